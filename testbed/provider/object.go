package main

import "time"

const externalName = "crossplane.io/external-name"

// object is a Kubernetes object as a tree.
type object map[string]any

func (o object) text(path ...string) string {
	at := map[string]any(o)
	for _, field := range path[:len(path)-1] {
		next, ok := at[field].(map[string]any)
		if !ok {
			return ""
		}
		at = next
	}
	text, _ := at[path[len(path)-1]].(string)
	return text
}

// child returns the object at a path, made where it is missing.
func (o object) child(path ...string) map[string]any {
	at := map[string]any(o)
	for _, field := range path {
		next, ok := at[field].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[field] = next
		}
		at = next
	}
	return at
}

func (o object) externalName() string {
	return o.text("metadata", "annotations", externalName)
}

func (o object) setExternalName(id string) {
	o.child("metadata", "annotations")[externalName] = id
}

// lateInitialise fills in a field that is not set, and says whether it did.
func (o object) lateInitialise(field, value string) bool {
	fields := o.child("spec", "forProvider")
	if _, ok := fields[field]; ok {
		return false
	}
	fields[field] = value
	return true
}

func (o object) setStatus(thing thing) {
	o.child("status", "atProvider")["id"] = thing.ID
	ready := map[string]any{
		"type":               "Ready",
		"status":             "True",
		"reason":             "Available",
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}
	status := o.child("status")
	kept, _ := status["conditions"].([]any)
	conditions := []any{}
	for _, condition := range kept {
		fields, ok := condition.(map[string]any)
		switch {
		case !ok || fields["type"] != "Ready":
			conditions = append(conditions, condition)
		case fields["status"] == "True" && fields["reason"] == "Available":
			ready = fields
		}
	}
	status["conditions"] = append(conditions, ready)
}
