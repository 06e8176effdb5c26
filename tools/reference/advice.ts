/** Writes the reference page of what people can do in each situation of a plan, in each dialect. */
import type { DialectName } from '../../src/api/refit/upgrade-policy.ts';
import { adviceJson } from '../../src/cli/advice/advice.ts';
import type { ShownPlan } from '../../src/cli/status/json-form.ts';
import { textsIn } from '../../src/cli/status/texts-of.ts';
import { MODULES } from '../../src/dialects/modules.ts';
import type { Situation } from '../../src/engine/explain/situations.ts';

type Kind = Situation['kind'];

interface Example<K extends Kind> {
  /** When a plan is in the situation, as a sentence. */
  readonly when: string;
  /** The situation of an example plan. */
  readonly facts: Omit<Extract<Situation, { readonly kind: K }>, 'kind'>;
  /** The dialects whose plans can be in the situation; absent for all dialects. */
  readonly only?: readonly DialectName[];
  /** True if no plan with the Machines of an owner can be in the situation. */
  readonly neverOfOwner?: true;
}

/** The dialects whose plans record the spec with which they began, and so can be edited after their end. */
const RECORDS_SPEC: readonly DialectName[] = ['autopilot', 'kubeadm'];

/** An example of each situation, in the order of the page. A situation without an example does not compile. */
const EXAMPLES: { readonly [K in Kind]: Example<K> } = {
  NodesFailed: {
    when: 'A node failed before it ran the new version.',
    facts: { isRollBack: false, nodes: ['w1'], code: undefined, budgets: [] },
  },
  ReleaseRefused: {
    when: 'A node runs the new version, and a health check, a hook or the node itself was not good afterwards.',
    facts: {
      isRollBack: false,
      refused: ['w1'],
      nodes: ['w1'],
      checks: [],
    },
  },
  RetriedByItself: {
    when: 'Nodes failed, and Refit tries all of them again by itself.',
    facts: { at: '2026-11-20T08:05:00Z', nodes: ['w1'], code: undefined, budgets: [] },
    only: ['autopilot', 'cattle'],
  },
  Mended: {
    when: 'Nodes failed, but they run the version now.',
    facts: { nodes: ['w1'], isPartial: true },
  },
  MendedKeepsSlot: {
    when: 'Nodes failed and run the version now, but they keep their slots, so other nodes do not start.',
    facts: { nodes: ['w1'] },
  },
  NodesGone: {
    when: 'The failed nodes do not exist any more.',
    facts: { isRollBack: false, nodes: ['w1'] },
  },
  Failed: { when: 'The plan failed without a failed node.', facts: {}, neverOfOwner: true },
  LeftOut: {
    when: 'The plan has ended without a node, for example because its drain was blocked.',
    facts: { nodes: ['w1'], held: [], isEdited: false },
  },
  PinnedLeftOut: {
    when: 'The plan has ended without a node whose version the policy pins.',
    facts: { nodes: ['w1'] },
  },
  Aborted: { when: 'Somebody aborted the plan.', facts: { refused: [], checks: [] } },
  Edited: {
    when: 'Somebody edited the plan after it had ended, and nothing carries the edit out.',
    facts: { isRollBack: false, failed: [] },
    only: RECORDS_SPEC,
  },
  StartsAgain: {
    when: 'Somebody edited the plan after it had ended, and the policy starts it again.',
    facts: {},
    only: ['autopilot'],
  },
  MixedVersions: {
    when: 'The nodes of the plan got different versions, because somebody edited the version while it ran.',
    facts: {},
    only: RECORDS_SPEC,
  },
  Differs: {
    when: 'The plan has ended, and somebody changed its nodes afterwards.',
    facts: { nodes: ['w1'] },
  },
  Empty: { when: 'The plan has no node.', facts: {}, neverOfOwner: true },
  WillBeRefused: { when: 'The leader will refuse the new plan.', facts: {}, neverOfOwner: true },
  Refused: { when: 'The plan was refused.', facts: {}, neverOfOwner: true },
  WaveUnapproved: { when: 'The next wave needs an approval.', facts: { wave: 2 } },
  Held: { when: 'Somebody holds the node that would start next.', facts: { target: 'w1' } },
  CordonedByOthers: {
    when: 'Other people or tools cordoned nodes, and the policy starts no further node.',
    facts: { nodes: ['w2'] },
  },
  WindowClosed: { when: 'No maintenance window is open.', facts: {} },
  Blackout: { when: 'The policy has a blackout now.', facts: {} },
};

/** The title of each dialect, and the plan for which the page shows the advice. */
const PLANS: readonly (Pick<ShownPlan, 'kind' | 'name' | 'namespace' | 'cluster'> & {
  readonly title: string;
  readonly dialect: DialectName;
})[] = [
  { title: 'k0s', dialect: 'autopilot', kind: 'Plan', name: 'autopilot' },
  {
    title: 'Plan of Rancher',
    dialect: 'cattle',
    kind: 'Plan',
    namespace: 'system-upgrade',
    name: 'k3s-agent',
  },
  {
    title: 'kubeadm',
    dialect: 'kubeadm',
    kind: 'ConfigMap',
    namespace: 'kube-system',
    name: 'refit-kubeadm',
  },
  {
    title: 'MachineDeployment',
    dialect: 'capi',
    kind: 'MachineDeployment',
    name: 'default/workers',
    cluster: 'prod',
  },
  {
    title: 'Machine',
    dialect: 'capi',
    kind: 'Machine',
    namespace: 'default',
    cluster: 'prod',
    name: 'prod-w1',
  },
];

export function adviceReference(): string {
  const kinds = Object.keys(EXAMPLES) as Kind[];
  return `${[
    '# Advice',
    '',
    'Generated from the advice of the commands (`src/cli/advice/advice.ts`) by `npm run generate`: edit it there. For each situation of a plan',
    'this page has what `refit status` and `refit why` tell people to do, and the commands that help first. In the JSON form,',
    '`plans[].advice[].situation` has the names of the situations. [Tests carry the first advice out](../internals/truth.md#advice). More on each',
    'symptom: [runbook](../runbook.md).',
    '',
    'In the examples, the node is called `w1`. A word in capitals stands for what only you know. An empty cell means that no command is',
    'needed, or that the text says what to change.',
    ...kinds.flatMap((kind) => ['', `## ${kind}`, '', EXAMPLES[kind].when, '', ...rowsOf(kind)]),
  ].join('\n')}\n`;
}

function rowsOf(kind: Kind): string[] {
  const textsOf = textsIn(MODULES);
  const { only, neverOfOwner }: Example<Kind> = EXAMPLES[kind];
  const shown = PLANS.filter(
    ({ dialect, kind: of }) =>
      (only === undefined || only.includes(dialect)) &&
      !(neverOfOwner === true && of === 'MachineDeployment'),
  );
  const rows = shown.map(({ title, ...plan }) => {
    const situation = { kind, ...EXAMPLES[kind].facts } as Situation;
    const [advice] = adviceJson({
      ...plan,
      uid: '',
      created: '2026-11-20T08:00:00Z',
      id: 'id1',
      policy: 'nightly',
      phase: 'failed',
      stages: [],
      waits: [],
      next: [],
      situations: [situation],
      texts: textsOf(plan.dialect),
    });
    const commands = advice?.commands.map((command) => `\`${command}\``).join('<br>') ?? '';
    return `| ${title} | ${cell(advice?.text ?? '')} | ${cell(commands)} |`;
  });
  return ['| with | what Refit says | commands |', '|---|---|---|', ...rows];
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}
