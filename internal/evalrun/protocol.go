package evalrun

import (
	"encoding/json"
	"fmt"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"proctor/internal/rollouts"
	"proctor/monitor"
)

// bytesPerToken is the usual rule of thumb, where an endpoint does not count.
const bytesPerToken = 4

// modelCall is one call that a reply makes.
type modelCall struct {
	id        string
	name      string
	arguments json.RawMessage
	wrong     string // what is wrong with it, "" for nothing
}

// callsOf reads the calls of a reply.
func callsOf(m *openai.ChatCompletionMessage, protocol string) []modelCall {
	if protocol == Text {
		return textCalls(m.Content)
	}
	var out []modelCall
	for _, c := range m.ToolCalls {
		call := modelCall{id: c.ID, name: c.Function.Name, arguments: json.RawMessage(c.Function.Arguments)}
		if strings.TrimSpace(c.Function.Arguments) == "" {
			call.arguments = json.RawMessage("{}")
		}
		if !json.Valid(call.arguments) {
			call.wrong = "the arguments are no JSON object; send the call again with valid JSON"
		}
		out = append(out, call)
	}
	return out
}

// submitWord alone in a block ends the attempt.
const submitWord = "submit"

// textCalls reads the first bash block; further ones are told to wait by what is shown.
func textCalls(text string) []modelCall {
	_, rest, ok := strings.Cut(text, "```bash\n")
	if !ok {
		return nil
	}
	command, _, ok := strings.Cut(rest, "```")
	command = strings.TrimSpace(command)
	if !ok || command == "" {
		return nil
	}
	if command == submitWord {
		return []modelCall{{name: monitor.ToolSubmit, arguments: json.RawMessage("{}")}}
	}
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		return nil // text always marshals
	}
	return []modelCall{{name: monitor.ToolBash, arguments: args}}
}

// answer makes the message that shows a call's outcome.
func (c modelCall) answer(protocol, text string) *openai.ChatCompletionMessage {
	if protocol == Text {
		return &openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: text}
	}
	return &openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: c.id, Content: text}
}

// observation gives what a model is shown of an observation.
func observation(o monitor.Observation) string {
	text := strings.TrimSuffix(o.Output, "\n")
	switch {
	case o.TimedOut:
		text += "\n[timed out]"
	case o.Handle != nil:
		text += fmt.Sprintf("\n[running in the background, handle %s]", *o.Handle)
	case o.ExitCode != nil && *o.ExitCode != 0:
		text += fmt.Sprintf("\n[exit status %d]", *o.ExitCode)
	}
	if text == "" {
		return "(no output)"
	}
	return strings.TrimPrefix(text, "\n")
}

const toolsPrompt = `You solve a task in a sandboxed Linux machine by calling tools. Your work is in %s.
Look before you change something, test what you changed, and call submit when you are done. Every reply must call a tool.`

const textPrompt = "You solve a task in a sandboxed Linux machine. Your work is in %s.\n" +
	"Every reply holds exactly one command in one block:\n\n```bash\ncommand\n```\n\n" +
	"It runs in a persistent shell, and you are shown its output. Look before you change something, test what you changed, " +
	"and when you are done reply with the block\n\n```bash\nsubmit\n```"

const (
	nudgeTools = "Your reply calls no tool. Call one, or submit if you are done."
	nudgeText  = "Your reply holds no command. Reply with one command in one ```bash block, or with submit in it if you are done."

	summaryAsk = "The conversation is getting too long. Write down for yourself what you need to go on without it: what the task asks, what you found, " +
		"what you changed in which files, what you tried that did not work, and what is left to do. Call no tool."
	summaryHead = "The conversation so far was replaced by your own summary of it:\n\n"
)

// head gives the messages that a conversation opens with.
func head(made *rollouts.Created) func(string) []openai.ChatCompletionMessage {
	return func(protocol string) []openai.ChatCompletionMessage {
		system := toolsPrompt
		if protocol == Text {
			system = textPrompt
		}
		return []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: fmt.Sprintf(system, made.Workdir)},
			{Role: openai.ChatMessageRoleUser, Content: made.Instruction},
		}
	}
}

// toolsOf gives a rollout's tools as the chat API takes them.
func toolsOf(made *rollouts.Created) []openai.Tool {
	var out []openai.Tool
	for _, t := range made.Tools {
		out = append(out, openai.Tool{Type: openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.InputSchema}})
	}
	return out
}
