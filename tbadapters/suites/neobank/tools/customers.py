"""Tools: who the customer is."""

from typing import Annotated, Any

from pydantic import Field

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.sqlite import Records, reads, writes
from tbadapters.suites.neobank.tools.arguments import BirthDate, Country, CustomerId
from tbadapters.suites.neobank.tools.ledger import today


@reads
async def find_customers(
    db: Records, name: Annotated[str, Field(min_length=2, description="Full name or a part of it.")]
) -> list[dict[str, Any]]:
    """Find customers by name. Returns customer numbers, names and cities; empty if there is none."""
    return db.all(
        "SELECT customer_id, full_name, city FROM customers WHERE instr(lower(full_name), lower(?)) > 0"
        " ORDER BY customer_id",
        name.strip(),
    )


@reads
async def get_customer(db: Records, customer_id: CustomerId) -> dict[str, Any]:
    """Get a customer's details: tier, address, phone, changes of both, authorised person; and today's date."""
    customer = db.get("customers", customer_id)
    # Whoever could read the date of birth would not have to ask for it.
    shown = {name: value for name, value in customer.items() if name != "date_of_birth"}
    return {"today": today(db), **shown}


@writes
async def verify_identity(db: Records, customer_id: CustomerId, date_of_birth: BirthDate) -> dict[str, Any]:
    """Check the date of birth that the customer states. The result, passed or failed, is put on the customer's file."""
    customer = db.get("customers", customer_id)
    check = db.insert(
        "identity_checks",
        check_id=db.new_id("IDC"),
        customer_id=customer_id,
        stated_value=date_of_birth,
        result="passed" if date_of_birth == customer["date_of_birth"] else "failed",
        checked_on=today(db),
    )
    return {"check_id": check["check_id"], "customer_id": customer_id, "result": check["result"]}


@writes
async def update_address(
    db: Records,
    *,
    customer_id: CustomerId,
    street: Annotated[str, Field(min_length=3, description="Street and house number.")],
    postcode: Annotated[str, Field(min_length=3, description="Postal code.")],
    city: Annotated[str, Field(min_length=2, description="City.")],
    country: Country,
) -> dict[str, Any]:
    """Change a customer's postal address."""
    customer = db.get("customers", customer_id)
    address = {"street": street.strip(), "postcode": postcode.strip(), "city": city.strip(), "country": country}
    if all(customer[name] == value for name, value in address.items()):
        raise ToolError(f"This already is the address of {customer_id}.")
    db.update("customers", customer_id, **address, address_changed_on=today(db))
    return {"customer_id": customer_id, **address}


@writes
async def update_phone(
    db: Records,
    customer_id: CustomerId,
    phone: Annotated[
        str, Field(pattern=r"^\+[0-9]{8,15}$", description="With country code, no spaces: +4915112345678.")
    ],
) -> dict[str, Any]:
    """Change a customer's phone number."""
    if db.get("customers", customer_id)["phone"] == phone:
        raise ToolError(f"This already is the phone number of {customer_id}.")
    db.update("customers", customer_id, phone=phone, phone_changed_on=today(db))
    return {"customer_id": customer_id, "phone": phone}
