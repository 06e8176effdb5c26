/** A button that starts an action, and the result of an action. */
import type { ActionResult } from '../src/cli/dashboard/state.ts';

interface ActProps {
  readonly label: string;
  /**
   * `primary` marks the action for which the plan or the node waits. `apart` marks an action that nobody should start
   * by mistake.
   */
  readonly look?: 'primary' | 'apart' | undefined;
  readonly isBusy: boolean;
  readonly act: () => void;
}

export function Act({ label, look, isBusy, act }: ActProps) {
  return (
    <button type="button" class={look} disabled={isBusy} onClick={act}>
      {label}
    </button>
  );
}

export function Result({ result }: { readonly result: ActionResult | undefined }) {
  return (
    <div role="status" class={result?.isDone === false ? 'result refused' : 'result'}>
      {result?.lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}
