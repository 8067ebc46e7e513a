"""What is done with whole sessions: listing, search, copies, marks, removal, export and import.

Each subject is a module of functions that take the store; all of them block. Import the module that is needed.
"""

__all__ = ()
