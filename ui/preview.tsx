/**
 * Previews a plan that is not applied yet. The viewer pastes the plan or picks a file, and the server says what the
 * plan would do.
 */
import { useState } from 'preact/hooks';
import type { ActionResult, LONGEST_TEXT as Limit } from '../src/cli/dashboard/state.ts';
import { post } from './post.ts';

/** The type makes the compiler check that this limit equals the limit of the server. */
const LONGEST_TEXT: typeof Limit = 262_144;

export function Preview() {
  const [text, setText] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [seen, setSeen] = useState<{ of: string; result: ActionResult }>();
  const preview = (): void => {
    setBusy(true);
    void ask(text)
      .then((result) => setSeen({ of: text, result }))
      .finally(() => setBusy(false));
  };
  const read = async (input: HTMLInputElement): Promise<void> => {
    const [file] = input.files ?? [];
    if (file === undefined) return;
    if (file.size > LONGEST_TEXT) setSeen({ of: text, result: TOO_LONG });
    else setText(await file.text());
    // An empty value allows the user to pick the same file again after a change of the file.
    input.value = '';
  };
  // The result of another text is hidden, because it would be misleading.
  const result = seen?.of === text ? seen.result : undefined;
  return (
    <details class="preview">
      <summary>Preview a plan</summary>
      <p>
        Paste a Plan as YAML, or pick a file. Nothing is written: the page shows what{' '}
        <code>refit preview -f</code> shows.
      </p>
      <label>
        YAML of the plan
        <textarea
          rows={8}
          spellcheck={false}
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <label>
        File with the plan{' '}
        <input
          type="file"
          accept=".yaml,.yml,.json"
          onChange={({ currentTarget }) => void read(currentTarget)}
        />
      </label>
      <p>
        <button type="button" disabled={isBusy || text.trim() === ''} onClick={preview}>
          Preview
        </button>
      </p>
      <div role="status" class={result?.isDone === false ? 'result refused' : 'result'}>
        {isBusy && <p>Previewing…</p>}
        {!isBusy && result !== undefined && <pre>{result.lines.join('\n')}</pre>}
      </div>
    </details>
  );
}

const TOO_LONG: ActionResult = {
  isDone: false,
  lines: [`The text is longer than ${LONGEST_TEXT / 1024} KiB.`],
};

async function ask(text: string): Promise<ActionResult> {
  if (new Blob([text]).size > LONGEST_TEXT) return TOO_LONG;
  return await post('api/preview', 'application/yaml', text);
}
