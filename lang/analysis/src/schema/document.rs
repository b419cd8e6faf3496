//! Documentation of the language, made from the schema.
