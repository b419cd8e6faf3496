module transform

go 1.22
