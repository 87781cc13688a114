// Ollama's own Go package (api.Client) against a running server: every method that it has, counted.
// Usage: OLLAMA_HOST=URL main MODEL ENCODER FILE      (FILE: a GGUF file that is sent as a blob)
package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

const template = "{{ if .System }}{{ .System }}\n{{ end }}{{ .Prompt }} {{ .Response }}"
const ask = "act: turn_off; device: lights; room: kitchen; result: done"

var (
	ctx        = context.Background()
	good, all  int
	off        = false
	greedy     = map[string]any{"temperature": 0, "repeat_penalty": 1, "num_predict": 60}
	model, enc string
)

func call(what string, fn func() (bool, error)) {
	all++
	ok, err := fn()
	if ok && err == nil {
		good++
		return
	}
	fmt.Printf("FAIL %s: %v\n", what, err)
}

func generate(c *api.Client, req api.GenerateRequest) (text string, last api.GenerateResponse, parts int, err error) {
	if req.Options == nil {
		req.Options = greedy
	}
	if req.Model == "" {
		req.Model = model
	}
	err = c.Generate(ctx, &req, func(r api.GenerateResponse) error {
		text += r.Response
		last = r
		parts++
		return nil
	})
	return
}

func chat(c *api.Client, req api.ChatRequest) (text string, last api.ChatResponse, parts int, err error) {
	if req.Options == nil {
		req.Options = greedy
	}
	if req.Messages == nil {
		req.Messages = []api.Message{{Role: "user", Content: ask}}
	}
	req.Model = model
	err = c.Chat(ctx, &req, func(r api.ChatResponse) error {
		text += r.Message.Content
		if len(last.Message.ToolCalls) > 0 { // calls come before the last part
			r.Message.ToolCalls = last.Message.ToolCalls
		}
		last = r
		parts++
		return nil
	})
	return
}

// Whether an error has this status.
func status(err error, code int) bool {
	var s api.StatusError
	return errors.As(err, &s) && s.StatusCode == code && s.ErrorMessage != ""
}

func texts(c *api.Client) {
	want, _, _, err := generate(c, api.GenerateRequest{Prompt: ask})
	call("Generate", func() (bool, error) { return want != "", err })
	call("Generate, whole", func() (bool, error) {
		text, last, parts, err := generate(c, api.GenerateRequest{Prompt: ask, Stream: &off})
		return text == want && last.Done && parts == 1 && last.EvalCount > 0, err
	})
	call("Generate, system and template", func() (bool, error) {
		_, last, _, err := generate(c, api.GenerateRequest{Prompt: ask, System: "Be brief.",
			Template: template})
		return last.Done, err
	})
	call("Generate, raw", func() (bool, error) {
		_, last, _, err := generate(c, api.GenerateRequest{Prompt: "Once", Raw: true, Options: map[string]any{"num_predict": 2}})
		return last.EvalCount <= 2 && last.Done, err
	})
	call("Generate, format", func() (bool, error) {
		text, _, _, err := generate(c, api.GenerateRequest{Prompt: ask, Format: json.RawMessage(`{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]}`)})
		var v struct{ On *bool }
		return json.Unmarshal([]byte(text), &v) == nil && v.On != nil, err
	})
	call("Generate, context", func() (bool, error) {
		_, first, _, err := generate(c, api.GenerateRequest{Prompt: ask})
		if err != nil {
			return false, err
		}
		_, second, _, err := generate(c, api.GenerateRequest{Prompt: "again", Context: first.Context})
		return len(first.Context) > 0 && second.PromptEvalCount > first.PromptEvalCount, err
	})
	call("Generate, logprobs", func() (bool, error) {
		_, last, _, err := generate(c, api.GenerateRequest{Prompt: ask, Logprobs: true, TopLogprobs: 2, Stream: &off})
		return len(last.Logprobs) == last.EvalCount && len(last.Logprobs[0].TopLogprobs) == 2, err
	})
	call("Generate, truncate and shift", func() (bool, error) {
		text, _, _, err := generate(c, api.GenerateRequest{Prompt: ask, Truncate: &off, Shift: &off})
		return text == want, err
	})
	call("Generate, load and unload", func() (bool, error) {
		_, load, _, err := generate(c, api.GenerateRequest{KeepAlive: &api.Duration{Duration: time.Minute}})
		if err != nil {
			return false, err
		}
		return load.DoneReason == "load", nil
	})
	call("Generate, an unknown model", func() (bool, error) {
		_, _, _, err := generate(c, api.GenerateRequest{Model: "nobody", Prompt: "x"})
		return status(err, http.StatusNotFound), nil
	})
	call("Chat", func() (bool, error) {
		text, last, _, err := chat(c, api.ChatRequest{})
		return text == want && last.Done, err
	})
	call("Chat, whole", func() (bool, error) {
		text, last, parts, err := chat(c, api.ChatRequest{Stream: &off})
		return text == want && parts == 1 && last.TotalDuration > 0, err
	})
	call("Chat, think", func() (bool, error) {
		text, _, _, err := chat(c, api.ChatRequest{Think: &api.ThinkValue{Value: false}})
		return text == want, err
	})
	call("Chat, format", func() (bool, error) {
		text, _, _, err := chat(c, api.ChatRequest{Format: json.RawMessage(`{"enum":["on","off"]}`)})
		return text == `"on"` || text == `"off"`, err
	})
	call("Chat, tools", func() (bool, error) {
		properties := api.NewToolPropertiesMap()
		properties.Set("on", api.ToolProperty{Type: api.PropertyType{"boolean"}})
		tool := api.Tool{Type: "function", Function: api.ToolFunction{Name: "light", Description: "switch a light",
			Parameters: api.ToolFunctionParameters{Type: "object", Required: []string{"on"}, Properties: properties}}}
		_, last, _, err := chat(c, api.ChatRequest{Tools: api.Tools{tool}})
		return last.Done, err
	})
	call("Chat, calls and their results", func() (bool, error) {
		arguments := api.NewToolCallFunctionArguments()
		arguments.Set("on", true)
		_, last, _, err := chat(c, api.ChatRequest{Messages: []api.Message{{Role: "user", Content: ask},
			{Role: "assistant", ToolCalls: []api.ToolCall{{ID: "call_1", Function: api.ToolCallFunction{Name: "light", Arguments: arguments}}}},
			{Role: "tool", ToolName: "light", ToolCallID: "call_1", Content: "done"}}})
		return last.Done, err
	})
	call("Chat, images are refused by name", func() (bool, error) {
		_, _, _, err := chat(c, api.ChatRequest{Messages: []api.Message{{Role: "user", Content: "x", Images: []api.ImageData{[]byte("abc")}}}})
		return err != nil && strings.Contains(err.Error(), "images"), nil
	})
	call("Chat, logprobs", func() (bool, error) {
		_, last, _, err := chat(c, api.ChatRequest{Logprobs: true, TopLogprobs: 1, Stream: &off})
		return len(last.Logprobs) == last.EvalCount, err
	})
	call("Chat, shift and num_keep", func() (bool, error) {
		on := true
		_, last, _, err := chat(c, api.ChatRequest{Truncate: &on, Shift: &on, Options: map[string]any{"num_keep": 4, "num_predict": 8}})
		return last.Done, err
	})
	call("Embed", func() (bool, error) {
		r, err := c.Embed(ctx, &api.EmbedRequest{Model: enc, Input: []string{"a", "b"}})
		return err == nil && len(r.Embeddings) == 2 && r.PromptEvalCount > 0, err
	})
	call("Embed, dimensions", func() (bool, error) {
		r, err := c.Embed(ctx, &api.EmbedRequest{Model: enc, Input: "a", Dimensions: 8, Truncate: &off})
		return err == nil && len(r.Embeddings[0]) == 8, err
	})
	call("Embeddings", func() (bool, error) {
		r, err := c.Embeddings(ctx, &api.EmbeddingRequest{Model: enc, Prompt: "a"})
		return err == nil && len(r.Embedding) > 100, err
	})
}

func manage(c *api.Client, file string) {
	done := func(last *string) func(api.ProgressResponse) error {
		return func(r api.ProgressResponse) error {
			*last = r.Status
			return nil
		}
	}
	call("Heartbeat", func() (bool, error) { err := c.Heartbeat(ctx); return err == nil, err })
	call("Version", func() (bool, error) { v, err := c.Version(ctx); return v != "", err })
	call("List", func() (bool, error) {
		r, err := c.List(ctx)
		return err == nil && len(r.Models) >= 2 && r.Models[0].Digest != "" && !r.Models[0].ModifiedAt.IsZero(), err
	})
	call("ListRunning", func() (bool, error) {
		r, err := c.ListRunning(ctx)
		return err == nil && len(r.Models) > 0 && !r.Models[0].ExpiresAt.IsZero(), err
	})
	call("Show", func() (bool, error) {
		r, err := c.Show(ctx, &api.ShowRequest{Model: model})
		return err == nil && r.Details.Family != "" && len(r.Capabilities) > 0 && len(r.ModelInfo) > 0, err
	})
	call("Show, verbose", func() (bool, error) {
		r, err := c.Show(ctx, &api.ShowRequest{Model: model, Verbose: true})
		if err != nil {
			return false, err
		}
		arch, _ := r.ModelInfo["general.architecture"].(string)
		return r.ModelInfo[arch+".context_length"] != nil, nil
	})
	call("Show, an unknown model", func() (bool, error) {
		_, err := c.Show(ctx, &api.ShowRequest{Model: "nobody"})
		return status(err, http.StatusNotFound), nil
	})
	data, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	call("CreateBlob", func() (bool, error) {
		err := c.CreateBlob(ctx, digest, strings.NewReader(string(data)))
		return err == nil, err
	})
	call("CreateBlob, a wrong digest", func() (bool, error) {
		return status(c.CreateBlob(ctx, "sha256:"+strings.Repeat("0", 64), strings.NewReader("x")), http.StatusBadRequest), nil
	})
	var last string
	call("Create", func() (bool, error) {
		err := c.Create(ctx, &api.CreateRequest{Model: "me/polite", From: model, System: "Be polite.", Parameters: map[string]any{"num_predict": 3},
			Template: template, License: "MIT",
			Messages: []api.Message{{Role: "user", Content: "hi"}, {Role: "assistant", Content: "hello"}}}, done(&last))
		return last == "success", err
	})
	call("Create, of a blob", func() (bool, error) {
		last = ""
		err := c.Create(ctx, &api.CreateRequest{Model: "me/blob", Files: map[string]string{"model.gguf": digest}}, done(&last))
		return last == "success", err
	})
	call("Show, what was made", func() (bool, error) {
		r, err := c.Show(ctx, &api.ShowRequest{Model: "me/polite"})
		return err == nil && r.System == "Be polite." && strings.Contains(r.Parameters, "num_predict") && r.License == "MIT" && len(r.Messages) == 2, err
	})
	call("Generate, what was made", func() (bool, error) {
		_, plain, _, err := generate(c, api.GenerateRequest{Prompt: ask, System: "Be polite.", Template: template})
		if err != nil {
			return false, err
		}
		_, r, _, err := generate(c, api.GenerateRequest{Model: "me/polite", Prompt: ask, Options: map[string]any{}})
		return r.EvalCount <= 3 && r.PromptEvalCount > plain.PromptEvalCount, err // its messages are in front
	})
	call("Copy", func() (bool, error) {
		err := c.Copy(ctx, &api.CopyRequest{Source: "me/polite", Destination: "me/other"})
		return err == nil, err
	})
	call("Push", func() (bool, error) {
		err := c.Push(ctx, &api.PushRequest{Model: "me/polite"}, done(&last))
		return last == "success", err
	})
	call("Delete", func() (bool, error) {
		err := c.Delete(ctx, &api.DeleteRequest{Model: "me/polite"})
		if err != nil {
			return false, err
		}
		_, err = c.Show(ctx, &api.ShowRequest{Model: "me/polite"})
		return status(err, http.StatusNotFound), nil
	})
	call("Delete, an unknown model", func() (bool, error) {
		return status(c.Delete(ctx, &api.DeleteRequest{Model: "nobody"}), http.StatusNotFound), nil
	})
	call("Pull", func() (bool, error) {
		err := c.Pull(ctx, &api.PullRequest{Model: "me/polite"}, done(&last))
		return last == "success", err
	})
	call("Pull, an unknown model", func() (bool, error) {
		return c.Pull(ctx, &api.PullRequest{Model: "me/nothing"}, done(&last)) != nil, nil
	})
	call("CloudStatusExperimental", func() (bool, error) {
		r, err := c.CloudStatusExperimental(ctx)
		return err == nil && r.Cloud.Disabled, err
	})
	call("Whoami", func() (bool, error) {
		u, err := c.Whoami(ctx)
		return err == nil && u.Name == "local", err
	})
	call("Signout", func() (bool, error) { err := c.Signout(ctx); return err == nil, err })
	// what only Ollama's own server has is refused as an old one of theirs does
	call("Disconnect is refused", func() (bool, error) { return status(c.Disconnect(ctx, "a2V5"), http.StatusNotFound), nil })
	call("SetAliasExperimental is refused", func() (bool, error) {
		return status(c.SetAliasExperimental(ctx, &api.AliasRequest{Alias: "nick", Target: model}), http.StatusNotFound), nil
	})
	call("DeleteAliasExperimental is refused", func() (bool, error) {
		return status(c.DeleteAliasExperimental(ctx, &api.AliasDeleteRequest{Alias: "nick"}), http.StatusNotFound), nil
	})
}

func main() {
	c, err := api.ClientFromEnvironment()
	if err != nil || len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: OLLAMA_HOST=URL main MODEL ENCODER FILE", err)
		os.Exit(2)
	}
	model, enc = os.Args[1], os.Args[2]
	texts(c)
	manage(c, os.Args[3])
	fmt.Printf("Ollama's Go package: %d of %d\n", good, all)
	if good != all {
		os.Exit(1)
	}
}
