package auth

import "bramble.dev/bramble/server/api"

// Attributes are what an authorizer decides by: who wants to do what. For a
// resource Path is empty; for another address only User, Verb (the HTTP method
// in lower case) and Path are set.
type Attributes struct {
	User api.User

	Verb                  string // get, list, watch, create, update, patch, delete, deletecollection
	Group, Version        string
	Resource, Subresource string
	Namespace, Name       string
	Fields                string // the raw field selector of a list or watch
	Path                  string
}
