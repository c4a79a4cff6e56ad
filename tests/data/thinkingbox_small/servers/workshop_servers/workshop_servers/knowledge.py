"""The workshop's rules, found by a search: a collection of the session's own in a Typesense."""

import os
import uuid

import typesense


class Knowledge:
    """The rules that a session was given, searchable."""

    def __init__(self, sources: list[dict]) -> None:
        self.name = f"workshop_{uuid.uuid4().hex}"
        self.client = typesense.Client(
            {
                "api_key": os.environ["TYPESENSE_API_KEY"],
                "nodes": [{"host": "127.0.0.1", "port": "8108", "protocol": "http"}],
                "connection_timeout_seconds": 5,
            }
        )
        fields = [{"name": "source", "type": "string", "facet": True}, {"name": "text", "type": "string"}]
        self.client.collections.create({"name": self.name, "fields": fields})
        for source in sources:
            for snippet in source["snippets"]:
                document = {"source": source["name"], "text": snippet}
                self.client.collections[self.name].documents.create(document)

    def found(self, query: str) -> list[dict]:
        """Return the rules that fit best."""
        search = {"collection": self.name, "q": query, "query_by": "text", "per_page": 2}
        (result,) = self.client.multi_search.perform({"searches": [search]}, {})["results"]
        return [{"source": hit["document"]["source"], "text": hit["document"]["text"]} for hit in result["hits"]]

    def drop(self) -> None:
        """Delete the collection."""
        self.client.collections[self.name].delete()
