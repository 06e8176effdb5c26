/** Shows sentences of `refit why` below their headings. Commands have a button that copies them. */
import { useState } from 'preact/hooks';
import type { Said } from '../src/cli/dashboard/state.ts';

export function Sentences({ said }: { readonly said: readonly Said[] }) {
  const [copied, setCopied] = useState('');
  const copy = (command: string): void => {
    void copyText(command).then((isCopied) =>
      setCopied(isCopied ? `Copied: ${command}` : 'The browser does not allow the page to copy.'),
    );
  };
  const hasCommands = said.some(({ areCommands }) => areCommands);
  return (
    <>
      <dl>
        {said.map(({ heading, lines, areCommands }) => (
          <div key={heading} class="said">
            <dt>{heading}</dt>
            {lines.map((line) =>
              areCommands === true ? (
                <dd key={line} class="command">
                  <code>{line}</code>
                  <button type="button" aria-label={`Copy ${line}`} onClick={() => copy(line)}>
                    Copy
                  </button>
                </dd>
              ) : (
                <dd key={line}>{line}</dd>
              ),
            )}
          </div>
        ))}
      </dl>
      {hasCommands && (
        <p role="status" class="copied">
          {copied}
        </p>
      )}
    </>
  );
}

/** Resolves with false if the browser does not allow it, such as for a file or for a page without TLS. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
