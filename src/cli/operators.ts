/** Owns who carries a plan out, by dialect, and what there is to do once it has failed. */
import { DISABLED, hashLabelOf, NODE_LABEL, PLAN_LABEL } from '../dialects/cattle/names.ts';
import { HOST_DEADLINE_MS } from '../dialects/kubeadm/dialect.ts';
import type { KubeObject } from '../kube/types.ts';
import { formatDuration } from '../util/duration.ts';
import { listed } from './phrases.ts';
import type { PlanView } from './status/view.ts';

export interface Operator {
  /** Whose work the plan is. */
  readonly name: string;
  /** What ends the patience with a node under way whose step has no end of its own. */
  readonly limit: string;
  /** What lets the whole begin anew, also where somebody aborted it. */
  readonly takeBack: string;
  /** What to do once a target has failed, or the plan was refused. */
  readonly mend: string;
  /** What lets one failed node go again where `refit retry` cannot, once the cause is mended; absent where it can. */
  readonly again?: (node: string, plan: KubeObject['metadata']) => string;
}

const AGENT_LIMIT = 'its --target-deadline has passed since the signal';
const ANEW = 'delete the plan, and apply it again';

const OPERATORS: Readonly<Record<string, Operator>> = {
  autopilot: {
    name: '`refit controller`',
    limit: AGENT_LIMIT,
    takeBack: ANEW,
    mend: `mend the cause, ${ANEW}`,
  },
  cattle: {
    name: 'the system-upgrade-controller',
    limit: 'its Job has failed or taken its whole time',
    takeBack: 'take the annotation upgrade.refit.dev/abort off the Plan',
    mend: 'mend the cause, and give the Plan another version; docs/guides/system-upgrade-controller.md has how a node goes again with the same one',
    again: (node, { name, namespace }) => {
      const label = hashLabelOf(name);
      const job = `-n ${namespace} -l ${PLAN_LABEL}=${name},${NODE_LABEL}=${node}`;
      const commands = [
        `kubectl label node ${node} --overwrite ${label}=${DISABLED}`,
        `kubectl delete jobs ${job}`,
        `kubectl label node ${node} ${label}-`,
      ];
      return `give the Plan another version; or, to try the same one again: ${commands.join('; ')}`;
    },
  },
  kubeadm: {
    name: '`refit kubeadm apply`',
    limit: `${formatDuration(HOST_DEADLINE_MS)} have passed since it began`,
    takeBack: 'run `refit kubeadm apply` again: it goes on where it was left',
    mend: 'mend the cause, and run `refit kubeadm apply` again: it goes on where it was left',
    again: () => 'run `refit kubeadm apply` again: it goes on where it was left',
  },
  capi: {
    name: '`refit capi-extension`',
    limit: AGENT_LIMIT,
    takeBack: 'take the request off the Node: the next call begins anew',
    mend: 'mend the cause, and take the request off the Node: the next call begins anew',
  },
};

const UNKNOWN: Operator = {
  name: 'its own controller',
  limit: 'its time is over',
  takeBack: ANEW,
  mend: `mend the cause, ${ANEW}`,
  again: () => ANEW,
};

export function operatorOf(dialect: string): Operator {
  return OPERATORS[dialect] ?? UNKNOWN;
}

/** Names of failed nodes that are told one by one. */
const MOST_NAMES = 5;

/** What to do about a plan that failed, wholly or in part, or was refused. */
export function mendingOf({ dialect, phase, abort, stages }: PlanView): string {
  const { takeBack, mend, again } = operatorOf(dialect);
  if (abort !== undefined) return takeBack;
  const failed = stages.flatMap(({ targets }) => targets).filter((target) => target.phase === 'failed');
  if (again || failed.length === 0 || phase === 'invalid') return mend;
  const names = listed(
    failed.map(({ name }) => name),
    MOST_NAMES,
  );
  const retry = failed.length === 1 ? `\`refit retry ${names}\`` : `\`refit retry NODE\` for each of ${names}`;
  if (failed.every(({ gone }) => gone === true)) {
    const [back, them] = failed.length === 1 ? [`${names} is`, 'it'] : ['they are', 'them'];
    return `once ${back} back, ${retry}; or delete the plan, and apply one without ${them}`;
  }
  return `mend the cause, in the plan too if it lies there, then ${retry}; or ${takeBack}`;
}
