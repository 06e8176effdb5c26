/**
 * The buttons that control plans and nodes, and the results of their actions. The page shows them only if the server
 * allows actions.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import type {
  ActionRequest,
  ActionResult,
  NodeState,
  PagePlan,
} from '../src/cli/dashboard/state.ts';
import { Act, Result } from './act.tsx';
import { AskedActions } from './asked-actions.tsx';
import { post } from './post.ts';

interface Actions {
  readonly act: (request: ActionRequest) => void;
  readonly isBusy: boolean;
  readonly result: ActionResult | undefined;
}

/**
 * Sends actions to the server, one at a time. `subject` names the plan or node that the actions are for. The hook never
 * returns the result of an action for another subject.
 */
function useActions(subject: string): Actions {
  const [isBusy, setBusy] = useState(false);
  const [seen, setSeen] = useState<{ of: string; result: ActionResult }>();
  const act = (request: ActionRequest): void => {
    setBusy(true);
    void send(request)
      .then((result) => setSeen({ of: subject, result }))
      .finally(() => setBusy(false));
  };
  return { act, isBusy, result: seen?.of === subject ? seen.result : undefined };
}

async function send(request: ActionRequest): Promise<ActionResult> {
  return await post('api/act', 'application/json', JSON.stringify(request));
}

export function PlanActions({ plan }: { readonly plan: PagePlan }) {
  const { act, isBusy, result } = useActions(plan.key);
  const [isAsking, ask] = useState(false);
  const { key, paused, unapproved, failedHooks, leftOut, rollBack } = plan;
  const isIdle = (failedHooks ?? leftOut ?? rollBack ?? result) === undefined;
  if (!plan.isOpen && isIdle) return null;
  return (
    <div class="actions">
      {plan.isOpen && (
        <div role="group" aria-label="Control the plan">
          {paused === 'plan' && (
            <Act
              label="Resume"
              look="primary"
              isBusy={isBusy}
              act={() => act({ action: 'resume', plan: key })}
            />
          )}
          {unapproved !== undefined && (
            <Act
              label={`Approve wave ${unapproved}`}
              look={paused === undefined ? 'primary' : undefined}
              isBusy={isBusy}
              act={() => act({ action: 'approve', plan: key, wave: unapproved })}
            />
          )}
          {paused === undefined && (
            <Act label="Pause" isBusy={isBusy} act={() => act({ action: 'pause', plan: key })} />
          )}
          <Act label="Abort…" look="apart" isBusy={isBusy} act={() => ask(true)} />
        </div>
      )}
      {failedHooks !== undefined && (
        <div role="group" aria-label="Control the hooks of the plan">
          <Act
            label={`Retry hooks: ${failedHooks.join(', ')}`}
            isBusy={isBusy}
            act={() => act({ action: 'retry-hooks', plan: key })}
          />
        </div>
      )}
      <AskedActions plan={plan} isBusy={isBusy} act={act} />
      {isAsking && (
        <Question
          title={`Abort ${plan.title}?`}
          text="Refit cancels the upgrade of each node whose service has not changed yet. The other nodes finish. An aborted plan cannot be resumed."
          yes="Abort the plan"
          no="Keep it running"
          answer={(reason) => {
            ask(false);
            if (reason !== undefined)
              act({ action: 'abort', plan: key, reason, isConfirmed: true });
          }}
        />
      )}
      <Result result={result} />
    </div>
  );
}

interface NodeActionsProps {
  readonly plan: PagePlan;
  readonly node: NodeState;
}

export function NodeActions({ plan, node }: NodeActionsProps) {
  const { act, isBusy, result } = useActions(`${plan.key} ${node.name}`);
  // The question stays the same even if another user ends the hold in the meantime.
  const [asked, ask] = useState<'hold' | 'unhold'>();
  const { name } = node;
  return (
    <div class="actions">
      <div role="group" aria-label="Control the node">
        {node.phase === 'failed' && (
          <Act
            label="Retry"
            isBusy={isBusy}
            act={() => act({ action: 'retry', plan: plan.key, node: name })}
          />
        )}
        {node.hold !== undefined ? (
          <Act label="Unhold…" look="primary" isBusy={isBusy} act={() => ask('unhold')} />
        ) : (
          <Act label="Hold…" isBusy={isBusy} act={() => ask('hold')} />
        )}
      </div>
      {asked === 'unhold' && (
        <Question
          title={`End the hold of ${name}?`}
          text={`${node.hold === undefined ? '' : `${node.hold}. `}Plans may then start on the node at once.`}
          yes="End the hold"
          no="Keep it held"
          hasReason={false}
          answer={(reason) => {
            ask(undefined);
            if (reason !== undefined) act({ action: 'unhold', node: name });
          }}
        />
      )}
      {asked === 'hold' && (
        <Question
          title={`Hold ${name}?`}
          text="No plan starts on the node until somebody ends the hold. Work in progress finishes."
          yes="Hold the node"
          no="Cancel"
          answer={(reason) => {
            ask(undefined);
            if (reason !== undefined) act({ action: 'hold', node: name, reason });
          }}
        />
      )}
      <Result result={result} />
    </div>
  );
}

interface QuestionProps {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly no: string;
  /** False if the user cannot give a reason for the action. */
  readonly hasReason?: boolean;
  /**
   * Called with the answer of the user. The argument is the reason, which may be empty; undefined if the user declines.
   */
  readonly answer: (reason: string | undefined) => void;
}

/** Asks the user to confirm an action. The Escape key declines. */
function Question({ title, text, yes, no, hasReason = true, answer }: QuestionProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState('');
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby="question" onCancel={() => answer(undefined)}>
      <h2 id="question">{title}</h2>
      <p>{text}</p>
      {hasReason && (
        <label>
          Reason (optional){' '}
          <input
            type="text"
            maxLength={500}
            value={reason}
            onInput={({ currentTarget }) => setReason(currentTarget.value)}
          />
        </label>
      )}
      <div class="answers">
        <button type="button" onClick={() => answer(undefined)}>
          {no}
        </button>
        <button type="button" class="serious" onClick={() => answer(reason)}>
          {yes}
        </button>
      </div>
    </dialog>
  );
}
