/**
 * The buttons of actions about which the page asks first: it shows what the action would do, as a dry run of the command
 * says it, before the viewer can confirm.
 */
import { useState } from 'preact/hooks';
import type {
  ActionRequest,
  AskedRequest,
  PagePlan,
  RollBackRequest,
} from '../src/cli/dashboard/state.ts';
import { Act } from './act.tsx';
import { AskFirst, type Field } from './ask-first.tsx';

const REASON: Field = { name: 'reason', label: 'Reason (optional)', value: '', longest: 500 };
const OPENING: readonly Field[] = [
  {
    name: 'for',
    label: 'How long, such as 2h or 90m; at most 168h',
    value: '2h',
    longest: 40,
    isRequired: true,
  },
  REASON,
];
const WHY_BACK: Field = { ...REASON, label: 'Reason (Refit records it)', isRequired: true };
const IMAGE: Field = {
  name: 'image',
  label: 'Image that installs the older version (default: that of the Plan)',
  value: '',
  longest: 1024,
};

/** What the viewer is asked about. It stays the same even if the plan changes in the meantime. */
interface Question {
  readonly title: string;
  readonly text: string;
  readonly yes: string;
  readonly fields: readonly Field[];
  readonly isTyped?: boolean;
  /** Returns the request that asks what the action would do. */
  readonly requestOf: (values: Readonly<Record<string, string>>) => AskedRequest | RollBackRequest;
}

interface AskedActionsProps {
  readonly plan: PagePlan;
  readonly isBusy: boolean;
  readonly act: (request: ActionRequest) => void;
}

export function AskedActions({ plan, isBusy, act }: AskedActionsProps) {
  const [asked, ask] = useState<Question>();
  const { paused, closed, acceptable = [], leftOut = [], rollBack } = plan;
  const button = (label: string, question: Question, look?: 'primary' | 'apart') => (
    <Act key={label} label={label} look={look} isBusy={isBusy} act={() => ask(question)} />
  );
  const hasButtons =
    closed !== undefined || acceptable.length + leftOut.length > 0 || rollBack?.kind === 'command';
  return (
    <>
      {hasButtons && (
        <div role="group" aria-label="Let nodes start or go back">
          {closed !== undefined &&
            button('Open the window…', opening(plan, closed), paused ? undefined : 'primary')}
          {acceptable.map((check) => button(`Accept ${check}…`, acceptance(plan, check)))}
          {leftOut.length > 0 && button('Retry left-out nodes…', retry(plan))}
          {rollBack?.kind === 'command' &&
            button('Roll back…', goingBack(plan, rollBack.takesImage), 'apart')}
        </div>
      )}
      {rollBack?.kind === 'byHand' && <p>{rollBack.sentence}</p>}
      {asked !== undefined && (
        <AskFirst
          {...asked}
          close={() => ask(undefined)}
          act={(request) => {
            ask(undefined);
            act(request);
          }}
        />
      )}
    </>
  );
}

function opening({ key, title }: PagePlan, closed: 'window' | 'blackout'): Question {
  return {
    title: `Open the maintenance window of ${title}?`,
    text:
      closed === 'blackout'
        ? 'Nodes may start now, also during the blackout. The opening ends by itself.'
        : 'Nodes may start now. The opening ends by itself.',
    yes: 'Open the window',
    fields: OPENING,
    requestOf: ({ for: length = '', reason = '' }) => ({
      action: 'start',
      plan: key,
      for: length.trim(),
      reason,
      ...(closed === 'blackout' ? { blackouts: true } : {}),
      isConfirmed: false,
    }),
  };
}

function acceptance({ key, title }: PagePlan, check: string): Question {
  return {
    title: `Accept that ${check} does not pass?`,
    text: `${title} then goes on although this health check does not pass, until its run ends.`,
    yes: 'Accept the failure',
    fields: [REASON],
    requestOf: ({ reason = '' }) => ({
      action: 'accept',
      plan: key,
      check,
      reason,
      isConfirmed: false,
    }),
  };
}

function retry({ key, title }: PagePlan): Question {
  return {
    title: `Retry the nodes that ${title} has left out?`,
    text: 'The plan continues with these nodes.',
    yes: 'Retry them',
    fields: [],
    requestOf: () => ({ action: 'retry-skipped', plan: key, isConfirmed: false }),
  };
}

function goingBack({ key, title }: PagePlan, takesImage: boolean): Question {
  return {
    title: `Roll ${title} back?`,
    text: 'The nodes get the versions that they ran before the plan, one after the other. This restarts them again.',
    yes: 'Roll back',
    fields: takesImage ? [WHY_BACK, IMAGE] : [WHY_BACK],
    isTyped: true,
    requestOf: ({ reason = '', image = '' }) => ({
      action: 'rollback',
      plan: key,
      reason,
      ...(image.trim() === '' ? {} : { image: image.trim() }),
      isConfirmed: false,
    }),
  };
}
