//! Scenarios, crash enumeration and models over the whole of Collie.
