package rest

import (
	"encoding/base64"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bramble.dev/bramble/server/objects"
)

// continuation is what a continue token says: where a list was cut off and of
// which revision it is; 0 goes on in the present state. To a client it is
// opaque.
type continuation struct {
	Revision uint64        `json:"rv"`
	After    objects.Place `json:"after"`
}

func (c continuation) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // two strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseContinuation reads a token that this server, or an earlier run of it,
// gave out.
func parseContinuation(token string) (c continuation, err error) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err == nil && c.After.Name == "" {
		err = errors.New("it names no object")
	}
	if err != nil {
		return c, badRequest("continue key is not valid: %v: list again without it", err)
	}
	return c, nil
}

// expired is the 410 for a list whose revision is forgotten, with a token that
// goes on in the present state: the client may take a list that is not of one
// moment, or begin anew.
func (c continuation) expired() error {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results, which then may not be consistent with those that you have.")
	err.ErrStatus.ListMeta.Continue = continuation{After: c.After}.String()
	return err
}
