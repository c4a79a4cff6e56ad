"""What the workshop's tools do with its records."""

from datetime import UTC, date, datetime, timedelta

from workshop_servers.records import Customer, Job, Order, Part, Records


class Workshop:
    """The workshop's tools on one set of records."""

    def __init__(self, patch: dict[str, list[dict]]) -> None:
        self.db = Records(patch)

    def call(self, tool: str, arguments: dict):
        """Call a tool.

        Raises:
            LookupError: there is no such row.
            ValueError: the records do not allow it.
        """
        return getattr(self, tool)(**arguments)

    def find_customer(self, email):
        """Find a customer by e-mail address."""
        for customer in self.db.get_all(Customer):
            if customer.email == email:
                return customer.model_dump(mode="json")
        raise LookupError(f"There is no customer {email}.")

    def get_job(self, job_id):
        """Look up a repair with the parts ordered for it."""
        job = self.db.get(Job, job_id).model_dump(mode="json")
        return job | {"orders": [o.model_dump(mode="json") for o in self.db.get_all(Order) if o.job_id == job_id]}

    def list_parts(self, name=""):
        """List the parts whose name contains a text."""
        return [p.model_dump(mode="json") for p in self.db.get_all(Part) if name.lower() in p.name.lower()]

    def update_job(self, job_id, status=None, tags=None, remark=None):
        """Change a repair."""
        job = self.db.get(Job, job_id)
        if job.status == "cancelled":
            raise ValueError(f"The repair {job_id} is cancelled.")
        changes = {"status": status, "tags": tags, "remark": remark}
        given = {name: value for name, value in changes.items() if value is not None}
        self.db.add(Job(**{**job.model_dump(), **given, "updated_at": datetime.now(UTC).isoformat()}))
        return self.get_job(job_id)

    def job_price(self, job_id, action, amount=None):
        """Show the price of a repair, or reduce it."""
        job = self.db.get(Job, job_id)
        if action == "reduce":
            if amount is None or not 0 < amount <= job.price:
                raise ValueError("The amount must be above 0 and at most the price.")
            self.db.add(job.model_copy(update={"price": round(job.price - amount, 2)}))
        return {"price": self.db.get(Job, job_id).price}

    def order_part(self, job_id, part_id, quantity=1, note=None):
        """Take a part from the shelf for a repair; it is fitted within three days."""
        part = self.db.get(Part, part_id)
        self.db.get(Job, job_id)
        if part.stock < quantity:
            raise ValueError(f"Only {part.stock} of {part.name} are left.")
        self.db.add(part.model_copy(update={"stock": part.stock - quantity}))
        due = (date.today() + timedelta(days=3)).isoformat()  # noqa: DTZ011  (as servers of the benchmark do)
        order = Order(
            id=f"O-{len(self.db.get_all(Order)) + 1}",
            job_id=job_id,
            part_id=part_id,
            quantity=quantity,
            due=due,
            note=note,
        )
        self.db.add(order)
        return order.model_dump(mode="json")
