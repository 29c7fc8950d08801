"""The demonstration: conversations that ship with the package, and models that packages ship."""
