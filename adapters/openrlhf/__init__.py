"""OpenRLHF, the real package: its agent executor plug-in, import hooks where it has no plug-in, no file patched."""
