package main

import "strings"

func writeQuery() []parameter {
	return []parameter{
		{"dryRun", "string", "When it is All, the request is checked and answered, and nothing is stored.", false},
		{"fieldManager", "string", "The name that the fields that this request changes are recorded under, at most 128 printable characters.", false},
		{"fieldValidation", "string", "What happens to fields that are unknown or given twice: Ignore, Warn (a warning each, the default) or Strict (an error).", false},
	}
}

func listQuery() []parameter {
	return []parameter{
		{"allowWatchBookmarks", "boolean", "Lets a watch send events of type BOOKMARK, which only carry a resourceVersion.", false},
		{"continue", "string", "A token of an earlier answer, to go on with its list.", false},
		{"fieldSelector", "string", "Limits the objects by their fields.", false},
		{"labelSelector", "string", "Limits the objects by their labels.", false},
		{"limit", "integer", "The number of objects that the client would like at once; the answer may hold all.", false},
		{"resourceVersion", "string", "How new the answer must be, or where a watch starts.", false},
		{"resourceVersionMatch", "string", "How resourceVersion is meant: Exact or NotOlderThan.", false},
		{"sendInitialEvents", "boolean", "Lets a watch begin with an ADDED event for each object that there is, ended by a bookmark.", false},
		{"timeoutSeconds", "integer", "Ends a watch after so many seconds.", false},
		{"watch", "boolean", "Streams changes instead of answering with a list.", false},
	}
}

func deleteQuery() []parameter {
	return []parameter{
		{"dryRun", "string", "When it is All, the request is checked and answered, and nothing is deleted.", false},
		{"gracePeriodSeconds", "integer", "How long the object may take to end; 0 deletes it at once.", false},
		{"propagationPolicy", "string", "What becomes of dependent objects: Orphan, Background or Foreground.", false},
	}
}

func logQuery() []parameter {
	return []parameter{
		{"container", "string", "The container; may be left out where there is one.", false},
		{"follow", "boolean", "Goes on with what the container writes.", false},
		{"limitBytes", "integer", "Ends the answer after so many bytes.", false},
		{"previous", "boolean", "The log of the container before its last restart.", false},
		{"sinceSeconds", "integer", "Only lines of so many last seconds.", false},
		{"tailLines", "integer", "Only so many last lines.", false},
		{"timestamps", "boolean", "Begins each line with its time as in RFC 3339.", false},
	}
}

// pathParameters are those that stand in braces.
func pathParameters(path string) []parameter {
	var all []parameter
	if strings.Contains(path, "{name}") {
		all = append(all, parameter{"name", "string", "The object's name.", true})
	}
	if strings.Contains(path, "{namespace}") {
		all = append(all, parameter{"namespace", "string", "The object's namespace.", true})
	}
	return all
}
