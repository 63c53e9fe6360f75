package testbucket

import "net/http"

// Kind is what a request asks of an S3 server.
type Kind string

// The requests that a Proxy tells apart.
const (
	Get         Kind = "get"
	Head        Kind = "head"
	List        Kind = "list"
	Put         Kind = "put" // of a whole object
	Begin       Kind = "begin upload"
	Part        Kind = "put part"
	Complete    Kind = "complete upload"
	Abort       Kind = "abort upload"
	Uploads     Kind = "list uploads"
	Delete      Kind = "delete"
	DeleteBatch Kind = "delete batch"
)

// KindOf tells what a request asks for, from its method and its query.
func KindOf(r *http.Request) Kind {
	query := r.URL.Query()
	switch upload := query.Has("uploadId"); r.Method {
	case http.MethodHead:
		return Head
	case http.MethodPut:
		if upload {
			return Part
		}
		return Put
	case http.MethodPost:
		switch {
		case upload:
			return Complete
		case query.Has("uploads"):
			return Begin
		}
		return DeleteBatch
	case http.MethodDelete:
		if upload {
			return Abort
		}
		return Delete
	}
	switch {
	case query.Has("list-type"):
		return List
	case query.Has("uploads"):
		return Uploads
	}
	return Get
}
