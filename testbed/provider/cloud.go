package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"
)

// thing is what the objects stand for.
type thing struct {
	ID         string         `json:"id"`
	Owner      string         `json:"owner"`
	Properties map[string]any `json:"properties"`
}

func (t thing) details() map[string][]byte {
	return map[string][]byte{"endpoint": []byte("https://" + t.ID + ".cloud.example"), "username": []byte("admin")}
}

// matches says whether every field that the object sets is so.
func (t thing) matches(object object) bool {
	for field, want := range object.child("spec", "forProvider") {
		if !reflect.DeepEqual(want, t.Properties[field]) {
			return false
		}
	}
	return true
}

// cloud keeps things in memory and writes down what happens to them.
type cloud struct {
	mutex         sync.Mutex
	things        map[string]thing
	truth         *os.File
	deterministic bool
}

func newCloud(truth *os.File, deterministic bool) *cloud {
	return &cloud{things: map[string]thing{}, truth: truth, deterministic: deterministic}
}

func openTruth(path string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
}

func (c *cloud) read(object object) (thing, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	thing, ok := c.things[c.id(object)]
	return thing, ok
}

func (c *cloud) create(object object) (thing, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	id := c.id(object)
	if !c.deterministic {
		id = "thg-" + suffix()
	} else if _, ok := c.things[id]; ok {
		return thing{}, fmt.Errorf("%s exists", id)
	}
	made := thing{ID: id, Owner: object.text("metadata", "uid"), Properties: properties(object)}
	if err := c.record("created", made); err != nil {
		return thing{}, err
	}
	c.things[id] = made
	return made, nil
}

func (c *cloud) update(object object) (thing, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	kept, ok := c.things[c.id(object)]
	if !ok {
		return thing{}, errors.New("there is nothing to update")
	}
	kept.Properties = properties(object)
	if err := c.record("updated", kept); err != nil {
		return thing{}, err
	}
	c.things[kept.ID] = kept
	return kept, nil
}

func (c *cloud) delete(object object) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	kept, ok := c.things[c.id(object)]
	if !ok {
		return nil
	}
	delete(c.things, kept.ID)
	return c.record("deleted", kept)
}

func (c *cloud) id(object object) string {
	if name := object.externalName(); name != "" || !c.deterministic {
		return name
	}
	return object.text("metadata", "name")
}

func (c *cloud) record(event string, thing thing) error {
	if c.truth == nil {
		return nil
	}
	line, err := json.Marshal(map[string]any{"event": event, "time": time.Now().UTC(), "thing": thing})
	if err != nil {
		return err
	}
	_, err = c.truth.Write(append(line, '\n'))
	return err
}

func properties(object object) map[string]any {
	copied := map[string]any{}
	for field, value := range object.child("spec", "forProvider") {
		copied[field] = value
	}
	return copied
}

func suffix() string {
	random := make([]byte, 6)
	// It never fails: the runtime ends the process instead.
	_, _ = rand.Read(random)
	return hex.EncodeToString(random)
}
