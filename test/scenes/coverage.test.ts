/** Shows what the recorded scenes show: each field of the status and of the page, and each reason, except those listed here. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { DashboardState, NodeState, PagePlan } from '../../src/cli/dashboard/state.ts';
import type {
  PlanJson,
  StageJson,
  StatusJson,
  TargetJson,
} from '../../src/cli/status/json-form.ts';
import { REASONS } from '../../src/engine/model/reasons.ts';
import { FIRST_TIER, fileOf, RECORDED, SECOND_TIER } from './played.ts';

const NAMES = readdirSync(RECORDED, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.txt'),
);
const TEXTS = NAMES.map((name) => readFileSync(join(RECORDED, name), 'utf8'));

/** Returns the JSON that the texts have below this title. */
function shownBelow(title: string): unknown[] {
  return TEXTS.flatMap((text) => {
    const start = text.indexOf(`\n${title}\n`);
    if (start === -1) return [];
    const [json = ''] = text.slice(start + title.length + 2).split('\n\n', 1);
    return [JSON.parse(json) as unknown];
  });
}

const STATUSES = shownBelow('$ refit status -o json') as readonly StatusJson[];
const PLANS = STATUSES.flatMap(({ plans }) => plans);
const STAGES = PLANS.flatMap(({ stages }) => stages);
const TARGETS = STAGES.flatMap(({ targets }) => targets);
const PAGES = shownBelow(
  '# State that the page of refit dashboard gets',
) as readonly DashboardState[];
const SHOWN_PLANS = PAGES.flatMap(({ plans }) => plans);
const SHOWN_NODES = SHOWN_PLANS.flatMap(({ nodes }) => nodes);

const PLAN_FIELDS = {
  kind: true,
  name: true,
  uid: true,
  created: true,
  id: true,
  dialect: true,
  phase: true,
  namespace: true,
  cluster: true,
  started: true,
  ended: true,
  goesOn: true,
  reason: true,
  edit: true,
  startsAgain: true,
  reasonCode: true,
  remedy: true,
  stopped: true,
  rollBack: true,
  rollsBackRun: true,
  goesBack: true,
  updateConfig: true,
  stages: true,
  waits: true,
  advice: true,
  next: true,
  stopsAhead: true,
  unapproved: true,
  policy: true,
  timeZone: true,
  paused: true,
  leaderless: true,
  abort: true,
  cordoned: true,
  decided: true,
  warnings: true,
  joined: true,
  checks: true,
  failedChecks: true,
  hooks: true,
  retryableHooks: true,
  silencing: true,
  unseen: true,
  wayBack: true,
  leavesOutGone: true,
} as const satisfies Readonly<Record<keyof PlanJson, true>>;

const STAGE_FIELDS = {
  command: true,
  role: true,
  version: true,
  maxInFlight: true,
  chosenBy: true,
  active: true,
  selection: true,
  targets: true,
} as const satisfies Readonly<Record<keyof StageJson, true>>;

const TARGET_FIELDS = {
  from: true,
  spent: true,
  rolledBack: true,
  etcdSnapshot: true,
  name: true,
  machine: true,
  phase: true,
  step: true,
  since: true,
  began: true,
  failure: true,
  failureReason: true,
  refusal: true,
  delay: true,
  stalled: true,
  rollsBack: true,
  drains: true,
  agent: true,
  fetchesAhead: true,
  isThere: true,
  hadVersion: true,
  runs: true,
  asked: true,
  installed: true,
  gone: true,
  held: true,
  pinned: true,
  wave: true,
  zone: true,
  wayBack: true,
  drain: true,
} as const satisfies Readonly<Record<keyof TargetJson, true>>;

const PAGE_FIELDS = {
  key: true,
  title: true,
  phase: true,
  isOpen: true,
  versions: true,
  done: true,
  total: true,
  percent: true,
  paused: true,
  unapproved: true,
  failedHooks: true,
  closed: true,
  acceptable: true,
  leftOut: true,
  rollBack: true,
  expected: true,
  progress: true,
  started: true,
  ended: true,
  wave: true,
  creator: true,
  chief: true,
  why: true,
  held: true,
  checks: true,
  nodes: true,
  history: true,
  traceId: true,
  report: true,
} as const satisfies Readonly<Record<keyof PagePlan, true>>;

const NODE_FIELDS = {
  name: true,
  role: true,
  version: true,
  phase: true,
  state: true,
  message: true,
  since: true,
  from: true,
  wave: true,
  zone: true,
  steps: true,
  why: true,
  hold: true,
  waits: true,
  stuck: true,
  unanswered: true,
  drain: true,
  labels: true,
} as const satisfies Readonly<Record<keyof NodeState, true>>;

/** These fields need a channel that does not answer, and an UpdateConfig. */
const NO_CHANNELS = ['goesOn', 'updateConfig'];
/** No scene sends a trace or has an UpdateConfig, and only a report has the field `report`. */
const NEVER_ON_PAGES = ['creator', 'traceId', 'report'];

test.each([
  { kind: 'PlanJson', fields: PLAN_FIELDS, shown: PLANS, missing: NO_CHANNELS },
  { kind: 'StageJson', fields: STAGE_FIELDS, shown: STAGES, missing: [] },
  { kind: 'TargetJson', fields: TARGET_FIELDS, shown: TARGETS, missing: ['delay'] },
  { kind: 'PagePlan', fields: PAGE_FIELDS, shown: SHOWN_PLANS, missing: NEVER_ON_PAGES },
  // The page asks the server for the explanation of a node, and only a server that follows Nodes sends their labels.
  { kind: 'NodeState', fields: NODE_FIELDS, shown: SHOWN_NODES, missing: ['why', 'labels'] },
])('the scenes show each field of $kind except those listed here', ({ fields, shown, missing }) => {
  const found = new Set(shown.flatMap((each) => Object.keys(each)));
  expect(Object.keys(fields).filter((field) => !found.has(field))).toEqual(missing);
});

/** Waits for an answer that comes within the same second, so that no scene sees them. */
const SHORT = [
  'Intended',
  'OrderUnknown',
  'ControlPlaneUnknown',
  'DrainPreviewUnknown',
  'DrainDelegationUnknown',
  'PreconditionsUnknown',
  'DownloadsUnchecked',
] as const;
/** Situations for which no scene exists yet. */
const UNPLAYED = [
  'KeptBundleRemoved',
  'VersionDiffers',
  'RecordUnread',
  'RecordRefused',
  'ChannelUnanswered',
  'CannotDecide',
  'ReceiverUnreachable',
  'WindowTooShort',
  'RemovedApis',
] as const;

test('the scenes show each reason except those listed here', () => {
  const all = TEXTS.join('\n');
  const missing = Object.keys(REASONS).filter((code) => !new RegExp(`\\b${code}\\b`).test(all));
  expect(missing.toSorted()).toEqual([...SHORT, ...UNPLAYED].toSorted());
});

test('no recorded text is without a scene', () => {
  expect(NAMES.toSorted()).toEqual([...FIRST_TIER, ...SECOND_TIER].map(fileOf).toSorted());
});
