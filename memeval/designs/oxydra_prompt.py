"""The words of Oxydra's designs: what a model reads of their tools, and what it is told about memory.

What seeds 002 and 003 prescribe stands here word for word: of `002` the parameters (80-151) and descriptions
(330-336), of `003` the save tool (251-281), the update tool (316-323), the search tool (335-378) and the
prompt (403-435), its escapes written out. `MANDATE` is ours: Oxydra went on to a stronger prompt whose parts
are known (2.C.5 of the requirements) and whose text is not, so each part was written anew, around the one
sentence of it that is known, which stands first. Ours too are `BASE`, which says nothing about memory, the
filter of tags that must all match, and the scratchpad, of which names and limits are known (2.C.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NOTES: Mapping[str, str] = {
    "memory_search": (
        "Search your persistent memory for relevant information. Use this when you need to recall user "
        "preferences, past decisions, stored facts, or anything previously saved. Results are ranked by "
        "relevance using semantic similarity and keyword matching. By default searches only your saved "
        "notes; set include_conversation to true to also search the current conversation history."
    ),
    "memory_save": (
        "Save an important piece of information to your persistent memory as a natural language note. Use "
        "this proactively whenever the user shares preferences, makes decisions, states facts, or tells you "
        "something worth remembering across conversations. Saved notes persist across all sessions and "
        "channels. Returns a note_id for future reference."
    ),
    "memory_update": (
        "Update a previously saved note with new content. Use this when the user corrects or changes "
        "previously stored information (e.g., a new preferred name, an updated preference). First use "
        "memory_search to find the note and its note_id, then call this with the note_id and the new content."
    ),
    "memory_delete": (
        "Delete a previously saved note from memory. Use this when the user asks you to forget specific "
        "information. First use memory_search to find the note and its note_id, then call this with the "
        "note_id to remove it."
    ),
}
TAGS: Mapping[str, str] = {
    "memory_search": """\
Search your persistent memory for relevant information. Use this proactively:
- At the START of a conversation when the request relates to a domain you may have
  worked on before.
- Before any complex or multi-step task, to find related procedures and known pitfalls.
- When the user references something discussed in a previous conversation.
- When you're unsure about user preferences or project conventions.

Results are ranked by relevance using semantic similarity and keyword matching.
By default searches only your saved notes; set include_conversation to true to also
search the current conversation history. Use tags to filter results by category.
Results with an empty note_id (from conversation search) cannot be updated or deleted.""",
    "memory_save": """\
Save an important piece of information to your persistent memory as a natural language note.

Save proactively when:
- The user shares preferences, personal details, or how they like things done.
- You discover a working approach after trial-and-error — save what works AND what failed.
- You find a non-obvious pitfall or something that doesn't work as expected.
- You discover project or codebase conventions.
- You learn durable facts about the user's setup, environment, or domain.

Use tags to categorize notes for better retrieval. Make notes self-contained and specific —
they will be retrieved out of context in future conversations.
Do NOT save secrets, one-off outputs, or transient details. Returns a note_id for future reference.""",
    "memory_update": """\
Update a previously saved note with new content. Use this when:
- The user corrects or changes previously stored information.
- A saved procedure is superseded by a better approach.
- You discover that stored information is inaccurate or outdated.
- Tags need to be changed.

First use memory_search to find the note and its note_id, then call this with the
note_id and the new content. Preserve useful context from the old note where applicable.""",
    "memory_delete": NOTES["memory_delete"],
}

QUERY = "Natural language search query"
TOP_K = "Max results to return (default: {}, max: 20)"
CONVERSATION = "Also search the current conversation session (default: false)"
CONTENT = "Natural language text to save (fact, preference, decision, etc.)"
SELF_CONTAINED = (
    "Natural language text to save. Make it self-contained — it will be retrieved out of context in future "
    "conversations. Include WHEN/WHERE it applies."
)
UPDATE_ID = "ID of the note to update (from `memory_search` or `memory_save` results)"
UPDATE_CONTENT = "New content to replace the existing note"
DELETE_ID = "ID of the note to delete (from `memory_search` results)"
NOTE_TAGS = (
    "Optional tags for categorization and retrieval filtering. Recommended tags: 'preference' (user "
    "preferences), 'procedure' (working methods), 'correction' (pitfalls/failures), 'convention' (project "
    "conventions), 'fact' (durable facts). Add domain-specific tags as appropriate (e.g., 'rust', 'aws')."
)
SEARCH_TAGS: Mapping[str, str] = {
    "any": "Optional tag filter — only return notes matching ANY of these tags",
    "all": "Optional tag filter — only return notes matching EVERY one of these tags",
}

SCRATCHPAD: Mapping[str, str] = {
    "scratchpad_read": "Read your scratchpad: the working notes you made in this conversation.",
    "scratchpad_write": (
        "Write your scratchpad: short working notes for this conversation, such as steps and open questions. "
        "Replaces everything on it. It is gone when the conversation ends; save what should last with "
        "memory_save."
    ),
    "scratchpad_clear": "Clear your scratchpad: remove everything on it.",
}
ITEMS: Mapping[str, Any] = {
    "type": "array",
    "items": {"type": "string", "minLength": 1, "maxLength": 240},
    "minItems": 1,
    "maxItems": 32,
    "description": "All items of the scratchpad: 1 to 32, each of 1 to 240 characters",
}

BASE = "You are a helpful assistant. When no tool is needed, answer directly and briefly."

GUIDE = """\
## Memory & Knowledge Management

You have persistent memory that carries knowledge across all conversations with this user.
Memory is personal to the user and persists indefinitely.

### When to Search Memory
- At the START of a conversation, if the user's request relates to a domain or project \
you may have worked on before, search memory for relevant context, preferences, and conventions.
- Before any complex or multi-step task, search for related procedures and known pitfalls.
- When the user refers to something you discussed previously, search for that context.
- When you're unsure about user preferences or conventions, search before assuming.

### When to Save to Memory
- When the user shares preferences, personal details, or how they like things done. \
Tag: "preference"
- When you discover a working approach after trial-and-error (save what works AND what failed). \
Tag: "procedure"
- When you find that something doesn't work or has a non-obvious pitfall. \
Tag: "correction"
- When you discover project or codebase conventions. \
Tag: "convention"
- When you learn durable facts about the user's setup, environment, or domain. \
Tag: "fact"
- Add domain-specific tags for better retrieval (e.g., "rust", "aws", "deployment").

### How to Write Good Notes
- Make notes self-contained — they will be retrieved out of context in future conversations.
- Include WHEN and WHERE a note applies (e.g., "For project Oxydra...", "When using libSQL...").
- For procedures: include both what works AND what to avoid.
- Keep notes atomic — one concept per note leads to better search retrieval.
- Do NOT save: secrets, passwords, API keys, one-off command outputs, or transient status.

### Maintaining Memory
- When you find a saved note that contradicts what you've since learned, update it.
- When a procedure you saved no longer works, update it with the corrected approach.
- When updating notes, preserve useful context from the old version where applicable.
- Older notes may be outdated — consider verifying critical information if a note \
was created long ago."""

MANDATE = """\
## Memory Protocol

Before executing ANY task, you MUST call `memory_search`. Your memory of this user persists across all \
conversations, and it is the ONLY way you know what happened before this one.

### The Loop: Plan, Recall, Execute, Reflect, Learn
1. Plan: decide what the request needs you to know about the user, the project, and earlier work.
2. Recall: call `memory_search` with a query made of those words, even if you think you know the answer.
3. Execute: do the task by what you found. A saved note wins over your assumptions.
4. Reflect: ask what the user told you, corrected, or decided, and what worked or failed.
5. Learn: call `memory_save` for what is new, `memory_update` for what has changed, and `memory_delete` for \
what the user wants forgotten. Do it BEFORE you write your final answer.

### You MUST Save
- Preferences, personal details, and how the user likes things done. Tag: "preference"
- An approach that worked after trial-and-error, with what failed. Tag: "procedure"
- A pitfall, or something that turned out to be wrong. Tag: "correction"
- A convention of a project or codebase. Tag: "convention"
- A durable fact about the user's setup, environment, or domain. Tag: "fact"
- Anything the user asks you to remember.

Each note holds ONE thing, names whom and what it is about, and says WHEN and WHERE it applies.

### NEVER
- NEVER answer a question about the user, or about earlier work, without searching first.
- NEVER say that you will remember something without having called `memory_save` or `memory_update`.
- NEVER save a second note about something that a saved note already covers: update that note.
- NEVER make up a note_id: take it from a result of `memory_search` or `memory_save`.
- NEVER save secrets, passwords, API keys, one-off command outputs, or transient status.

### Example
User: "Write the release notes. We leave out internal changes, by the way."
- Plan: I need to know how this user writes release notes.
- Recall: `memory_search` with the query "how the user writes release notes" finds no note about them.
- Execute: I write the release notes without internal changes.
- Reflect: leaving out internal changes is a rule that will hold next time.
- Learn: `memory_save` with the content "In release notes, the user leaves out internal changes." and the \
tags "convention" and "release-notes". Then I answer.

### CRITICAL REMINDER
Search BEFORE you act. Save BEFORE you answer. What you do not save is lost when this conversation ends."""

PROMPTS: Mapping[str, str] = {
    "none": BASE,
    "guide": f"{BASE}\n\n{GUIDE}",
    "mandate": f"{BASE}\n\n{MANDATE}",
}
