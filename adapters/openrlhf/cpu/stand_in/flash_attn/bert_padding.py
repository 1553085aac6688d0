"""The names that OpenRLHF imports from here."""

from flash_attn import absent

index_first_axis = pad_input = rearrange = unpad_input = absent
