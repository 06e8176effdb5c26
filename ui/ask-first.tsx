/** Asks the viewer to confirm an action, after the server has said what the action would do. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type {
  ActionRequest,
  ActionResult,
  AskedRequest,
  RollBackRequest,
} from '../src/cli/dashboard/state.ts';
import { post } from './post.ts';

export interface Field {
  readonly name: string;
  readonly label: string;
  /** The value at the beginning. */
  readonly value: string;
  readonly longest: number;
  readonly isRequired?: boolean;
}

interface AskFirstProps {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly fields: readonly Field[];
  /** True if the viewer must type `yes`. */
  readonly isTyped?: boolean;
  readonly requestOf: (values: Readonly<Record<string, string>>) => AskedRequest | RollBackRequest;
  readonly act: (request: ActionRequest) => void;
  readonly close: () => void;
}

/** The Escape key declines. */
export function AskFirst(props: AskFirstProps) {
  const { title, text, yes, fields, isTyped = false, requestOf, act, close } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(fields.map(({ name, value }) => [name, value])),
  );
  const [typed, setTyped] = useState('');
  const request = requestOf(values);
  const { result, isBusy, look } = useDryRun(request);
  useEffect(() => {
    dialog.current?.showModal();
    // Without a field, there is nothing to fill in before the server is asked.
    if (fields.length === 0) look();
  }, []);
  const isMissing = fields.some(
    ({ name, isRequired }) => isRequired === true && values[name]?.trim() === '',
  );
  const isSeen = result?.isDone === true;
  return (
    <dialog ref={dialog} aria-labelledby="asked" onCancel={close}>
      <h2 id="asked">{title}</h2>
      <p>{text}</p>
      {fields.map(({ name, label, longest, isRequired = false }) => (
        <label key={name}>
          {label}{' '}
          <input
            type="text"
            maxLength={longest}
            required={isRequired}
            value={values[name]}
            onInput={({ currentTarget: { value } }) => setValues({ ...values, [name]: value })}
          />
        </label>
      ))}
      <Change result={result} isBusy={isBusy} />
      {isSeen && isTyped && (
        <label>
          Go back? Type yes:{' '}
          <input
            type="text"
            maxLength={3}
            autocomplete="off"
            value={typed}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        </label>
      )}
      <div class="answers">
        <button type="button" onClick={close}>
          Cancel
        </button>
        {isSeen ? (
          <button
            key="yes"
            type="button"
            class="serious"
            disabled={isTyped && typed !== 'yes'}
            onClick={() => act(confirmed(request, result))}
          >
            {yes}
          </button>
        ) : (
          <button key="look" type="button" disabled={isBusy || isMissing} onClick={look}>
            Show what changes
          </button>
        )}
      </div>
    </dialog>
  );
}

/** Asks the server what an action would do. The answer about other values is hidden, because it would be misleading. */
function useDryRun(request: AskedRequest | RollBackRequest) {
  const [isBusy, setBusy] = useState(false);
  const [seen, setSeen] = useState<{ of: string; result: ActionResult }>();
  const body = JSON.stringify(request);
  const look = (): void => {
    setBusy(true);
    void post('api/act', 'application/json', body)
      .then((result) => setSeen({ of: body, result }))
      .finally(() => setBusy(false));
  };
  return { isBusy, look, result: seen?.of === body ? seen.result : undefined };
}

interface ChangeProps {
  readonly result: ActionResult | undefined;
  readonly isBusy: boolean;
}

/** Shows what the action would do. It takes the focus, because the button that asked for it goes away. */
function Change({ result, isBusy }: ChangeProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (result?.isDone === true) box.current?.focus();
  }, [result]);
  const words = result?.isDone === true ? 'If you confirm:' : 'This is refused:';
  return (
    <div
      ref={box}
      tabIndex={-1}
      role="status"
      class={result?.isDone === false ? 'result refused' : 'result'}
    >
      {isBusy && <p>Asking the server…</p>}
      {!isBusy && result !== undefined && (
        <>
          <p>{words}</p>
          <pre>{result.lines.join('\n')}</pre>
        </>
      )}
    </div>
  );
}

function confirmed(
  request: AskedRequest | RollBackRequest,
  { id = '' }: ActionResult,
): ActionRequest {
  return request.action === 'rollback'
    ? { ...request, isConfirmed: true, typed: 'yes', seen: id }
    : { ...request, isConfirmed: true };
}
