"""The base of all that is stored."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Stored(BaseModel):
    """Frozen, and closed: an unknown field is a mistake, and so is a number that JSON cannot hold."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True, allow_inf_nan=False
    )
