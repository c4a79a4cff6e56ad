"""The workshop's records: models by table, in memory."""

import hashlib
import json
from typing import Annotated, Literal

from pydantic import BaseModel


class UnstableField:
    """Marks a field that two right runs may fill differently: its hash leaves it out."""


class Customer(BaseModel):
    """Somebody who owns bicycles."""

    id: str
    name: str
    email: str
    preferences: list[str] = []


class Job(BaseModel):
    """A repair."""

    id: str
    customer_id: str
    bike: str
    status: Literal["open", "waiting", "ready", "cancelled"]
    price: float
    tags: list[str] = []
    remark: Annotated[str | None, UnstableField()] = None
    updated_at: Annotated[str | None, UnstableField()] = None


class Part(BaseModel):
    """A part on the shelf."""

    id: str
    name: str
    stock: int
    shelf: dict[str, int | str] = {}


class Order(BaseModel):
    """A part taken from the shelf for a repair, to be fitted by a day."""

    id: str
    job_id: str
    part_id: str
    quantity: int
    due: str
    note: Annotated[str | None, UnstableField()] = None


MODELS = {"customers": Customer, "jobs": Job, "parts": Part, "orders": Order}


class Records:
    """Rows by table and id."""

    def __init__(self, patch: dict[str, list[dict]]) -> None:
        self._model_cls_to_stem = {model: table for table, model in MODELS.items()}
        self._rows: dict[type[BaseModel], dict[str, BaseModel]] = {model: {} for model in MODELS.values()}
        for table, rows in patch.items():
            for row in rows:
                self.add(MODELS[table](**row))

    def add(self, row: BaseModel) -> None:
        """Add a row."""
        self._rows[type(row)][row.id] = row

    def get_all(self, model: type[BaseModel]) -> list[BaseModel]:
        """Return a table's rows."""
        return list(self._rows[model].values())

    def get(self, model: type[BaseModel], row_id: str) -> BaseModel:
        """Return a row.

        Raises:
            LookupError: there is none.
        """
        if row_id not in self._rows[model]:
            raise LookupError(f"There is no {model.__name__.lower()} {row_id}.")
        return self._rows[model][row_id]

    def state(self) -> dict[str, list[dict]]:
        """Return all rows as data."""
        return {table: [row.model_dump(mode="json") for row in self.get_all(model)] for table, model in MODELS.items()}

    def digest(self) -> str:
        """Return a hash of what counts: unstable fields left out, plain lists sorted, rows by id."""
        counted = {}
        for table, model in MODELS.items():
            unstable = {
                n for n, f in model.model_fields.items() if any(isinstance(m, UnstableField) for m in f.metadata)
            }
            rows = [row.model_dump(mode="json", exclude=unstable) for row in self.get_all(model)]
            counted[table] = sorted(
                ({n: _sorted(v) for n, v in row.items()} for row in rows), key=lambda row: row["id"]
            )
        return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()


def _sorted(value):
    return sorted(value) if isinstance(value, list) else value
