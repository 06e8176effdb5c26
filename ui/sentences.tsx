/** Shows sentences of `refit why` below their headings. */
import type { Said } from '../src/cli/dashboard/state.ts';

export function Sentences({ said }: { readonly said: readonly Said[] }) {
  return (
    <dl>
      {said.map(({ heading, lines }) => (
        <div key={heading} class="said">
          <dt>{heading}</dt>
          {lines.map((line) => (
            <dd key={line}>{line}</dd>
          ))}
        </div>
      ))}
    </dl>
  );
}
