"""What people see. Reads files only, and needs no torch."""
