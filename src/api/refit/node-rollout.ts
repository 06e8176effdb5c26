/**
 * Defines schema and types of the NodeRollout, which shows the progress of a plan of any dialect, and keeps the history
 * of the plan's runs.
 */
import { z } from 'zod';
import type { KubeObject } from '../../kube/resources.ts';
import { BY_TYPE, choice, LONGEST, object, optional, text, time, whole } from '../crd.ts';
import { conditionsSchema } from './upgrade-policy.ts';

/** The maximum number of entries in each list. These limits keep the object small if the plan has many targets. */
export const MOST = {
  runs: 10,
  failures: 10,
  approvals: 100,
  accepted: 100,
  checks: 100,
  checkNodes: 100,
  hooks: 50,
  silences: 100,
  before: 50,
  namesBefore: 500,
  downloads: 20,
  snapshots: 10,
  queued: 100,
  tried: 20,
} as const;
/** The maximum length of a URL in characters. A longer URL is not stored. */
export const LONGEST_URL = 2048;
/** The maximum length of a sentence in a NodeRollout, in characters. */
export const LONGEST_MESSAGE = 1024;

const nameSchema = z.string().max(LONGEST.name);
const sentence = (what: string) => text(what, LONGEST_MESSAGE);
const byKey = (key: string) => ({ ...BY_TYPE, 'x-kubernetes-list-map-keys': [key] });

const planSchema = object('The plan that the NodeRollout describes.', {
  apiVersion: z.string().max(LONGEST.name).describe('The API group and version of the plan.'),
  kind: z.string().max(LONGEST.word).describe('The kind of the plan, such as `Plan` or `Machine`.'),
  name: nameSchema.describe('The name of the plan.'),
  namespace: text('The namespace of the plan, if it has one.', LONGEST.namespace),
  uid: text(
    'The uid of the plan. A plan that is deleted and created again has another uid.',
    LONGEST.name,
  ),
});

const decision = {
  by: text('The user who decided this.', LONGEST.name),
  at: optional('When this was decided.', time('When this was decided.')),
  reason: text('The reason, in the words of that user.', LONGEST.reason),
  run: text(
    'The run that the decision is about: the uid of the plan and the id of the run, such as `UID/ID`. For a later run of the same plan, its number follows. An entry does ' +
      'not count if it is about another run, or if it lacks this field or `by`.',
    LONGEST.reason,
  ),
};

const approvalSchema = object('One approval.', {
  wave: z.int().min(1).describe('The number of the approved wave; the first wave is 1.'),
  ...decision,
});

const acceptedSchema = object('One accepted risk.', {
  check: nameSchema.describe('The name of the health check that may fail.'),
  ...decision,
  until: optional('When the acceptance ends; at the end of the run by default.', time('Its end.')),
});

const specSchema = object('The plan, and the decisions of people about it.', {
  plan: planSchema,
  approvals: optional(
    'Approved waves, as `refit approve` writes them. The policy says which waves need approval.',
    z.array(approvalSchema).max(MOST.approvals).meta(byKey('wave')),
  ),
  accepted: optional(
    'Health checks that may fail, as `refit accept` writes them.',
    z.array(acceptedSchema).max(MOST.accepted).meta(byKey('check')),
  ),
});

const count = (what: string) => z.int().min(0).describe(what);

const countsSchema = object('The number of targets by state.', {
  total: count('All targets.'),
  done: count('Targets that are done.'),
  failed: count('Targets that failed.'),
  inProgress: count('Targets that were started and are not done.'),
  pending: count('Targets that were not started yet.'),
  skipped: count(
    'Targets that the plan left out, targets that do not exist, and targets without a download for their platform.',
  ),
});

const etaSchema = object(
  'When the plan is expected to be done; absent before two nodes are done, and while the plan waits.',
  {
    at: time('The expected end if each node takes as long as the median of the finished nodes.'),
    earliest: time(
      'The expected end if the nodes are as fast as the fastest tenth of the finished nodes.',
    ),
    latest: time(
      'The expected end if the nodes are as slow as the slowest tenth of the finished nodes.',
    ),
    asOf: optional(
      'When the leader estimated these times. While no leader runs, nobody estimates them again.',
      time('When the leader estimated these times.'),
    ),
  },
);

const waveSchema = object(
  'The first wave with a node that has not ended; absent without waves, and once the plan or every wave has ended. The wave itself may still wait for its start.',
  {
    current: z.int().min(1).describe('The number of the wave; the first wave is 1.'),
    total: z.int().min(1).describe('The number of waves.'),
  },
);

const waitingSchema = object('What the plan waits for; absent while it waits for nothing.', {
  reason: z.string().max(LONGEST.reason).describe('The reason as one word.'),
  message: sentence('The reason as a sentence.'),
  ends: sentence('What ends the wait.'),
  since: time('Since when the plan waits.'),
});

const checkSchema = object('The last result of one health check.', {
  name: nameSchema.describe('The name of the check in the policy.'),
  state: z.enum(['Passing', 'Failing', 'Unknown']).describe('The result.'),
  message: sentence('The result as a sentence.'),
  value: text('The value that was found.', LONGEST.name),
  since: optional('Since when the check has this result.', time('Its begin.')),
  at: optional('When the check was made last.', time('Its time.')),
  nodes: optional(
    'The Nodes that a failing check is about; absent if it is about the whole cluster, or about more than 100 Nodes.',
    z.array(nameSchema).max(MOST.checkNodes),
  ),
});

const hookSchema = object('One hook that runs or has failed.', {
  hook: nameSchema.describe('The name of the hook in the policy.'),
  target: optional(
    'The target that the hook runs for, as the plan names it; absent if the hook runs for the whole plan.',
    nameSchema,
  ),
  id: nameSchema.describe(
    'The run: the name of its Job, or the `Idempotency-Key` of its requests.',
  ),
  state: z.enum(['Running', 'Failed']).describe('The state of the run.'),
  message: sentence('What the Job or the server said.'),
  since: optional('Since when the run is in this state.', time('Its begin.')),
});

const silenceSchema = object('One silence in Alertmanager for a node in progress.', {
  node: nameSchema.describe('The name of the Node.'),
  silence: z.string().max(LONGEST.word).describe('The name of the silence in the policy.'),
  server: z.string().max(LONGEST.reference).describe('The host and port of Alertmanager.'),
  id: text(
    'The id of the silence in Alertmanager; absent if there is none, or if Alertmanager has not said it.',
    LONGEST.name,
  ),
  since: optional('Since when the silence is active.', time('Its start.')),
  durationSeconds: z
    .int()
    .min(1)
    .describe('The seconds from each renewal to the end of the silence. The ends are not shown.'),
  problem: sentence(
    'Why the last attempt to make or renew the silence failed; absent if it succeeded.',
  ),
});

const wayBackSchema = object(
  'Whether the nodes that are done can go back to their earlier versions.',
  {
    state: z
      .enum(['open', 'closing', 'closed', 'unknown'])
      .describe('`closing`: open until `until`. `unknown`: too little is known.'),
    until: optional('When the way back closes.', time('Its end.')),
    message: sentence('Which nodes decide whether the way back is open, and why.'),
  },
);

const failureSchema = object('One node that failed.', {
  node: nameSchema.describe('The name of the node.'),
  reason: text('Why the node failed, as one word.', LONGEST.reason),
  message: sentence('Why the node failed; absent if that is not known.'),
});

const beforeSchema = object('Nodes that ran one version before the run.', {
  role: choice(
    'The role of the nodes in the plan; `worker` in plans that do not tell controllers from workers.',
    'controller',
    'worker',
  ),
  version: text('The version; absent if it is unknown.', LONGEST.reference),
  nodes: optional(
    'The names of these nodes; at most 500 in all entries together.',
    z.array(nameSchema).max(MOST.namesBefore),
  ),
  others: optional(
    'True if this version ran on all nodes of this role that no entry names.',
    z.boolean(),
  ),
});

const downloadSchema = object('The download for one platform.', {
  version: z.string().max(LONGEST.reference).describe('The version of the file.'),
  platform: z.string().max(LONGEST.word).describe('The platform, such as `linux-amd64`.'),
  url: z.string().max(LONGEST_URL).describe('The URL of the file.'),
  sha256: text(
    'The SHA-256 of the file in hex; without it the file was not verified.',
    LONGEST.word,
  ),
});

const snapshotSchema = object('The last snapshot of etcd that one controller took in the run.', {
  node: nameSchema.describe('The name of the controller, which has the file.'),
  at: time('When the snapshot was taken, or failed.'),
  path: text(
    'The path of the file on the controller; absent if the snapshot failed.',
    LONGEST.reference,
  ),
  bytes: optional('The size of the file.', z.int().min(0)),
  sha256: text('The SHA-256 of the file in hex.', LONGEST.word),
  failed: text('Why there is no snapshot.', LONGEST_MESSAGE),
});

const runSchema = object('One run of the plan.', {
  id: nameSchema.describe('The id of the run, as the signals name it.'),
  planUid: text('The uid of the plan at that time.', LONGEST.name),
  version: text('The version that the nodes were upgraded to.', LONGEST.reference),
  started: time('When the run started.'),
  ended: optional('When the run ended; absent while it runs.', time('Its end.')),
  phase: z.string().max(LONGEST.word).describe('How the run ended, or its present phase.'),
  reason: text('Why the run ended in this phase, as one word.', LONGEST.reason),
  message: sentence('Why the run ended in this phase, as a sentence.'),
  counts: countsSchema,
  traceId: text('The id of the trace of the run, if the leader sends traces.', LONGEST.word),
  before: optional(
    'The versions that the nodes ran before the run. `refit rollback` goes back to them.',
    z.array(beforeSchema).max(MOST.before),
  ),
  downloads: optional(
    'What the nodes downloaded. A later roll-back to this version finds the files here.',
    z.array(downloadSchema).max(MOST.downloads),
  ),
  snapshots: optional(
    'Snapshots of etcd that controllers reported; at most 10. A policy asks for them with `etcdSnapshot`.',
    z.array(snapshotSchema).max(MOST.snapshots),
  ),
  rollsBack: object('Set only for a run that rolls another run back.', {
    run: z
      .string()
      .max(LONGEST.reason)
      .describe('The run that is rolled back, as the uid of its plan and its id.'),
    reason: text('Who rolled that run back, and why, as the plan says.', LONGEST_MESSAGE),
  }).exactOptional(),
  failures: optional('Nodes that failed; at most 10.', z.array(failureSchema).max(MOST.failures)),
  paused: optional(
    'True if the plan was paused when it was deleted. The next plan of an owner of Machines then begins with a pause.',
    z.boolean(),
  ),
});

const toldSchema = object(
  'The state of the plan in the last notifications. They are possibly not sent yet.',
  {
    run: z.string().max(LONGEST.reason).describe('The run, as approvals name it.'),
    phase: z.string().max(LONGEST.word).describe('The phase of the plan.'),
    waves: count('The number of waves that have ended.'),
    plannedWaves: optional(
      'The number of all waves. If it changes, the waves were planned anew, and `waves` does not count the same waves any more.',
      z.int(),
    ),
    approval: count('The number of the wave that needs approval; 0 if none does.'),
    failed: count('The number of nodes that have failed.'),
    waiting: z
      .string()
      .max(LONGEST.reason)
      .describe('The reason of the long wait; empty if there is none.'),
  },
);

const receiverName = z.string().max(LONGEST.name).describe('`<policy>/<name of the receiver>`.');

const queuedSchema = object('One notification that one receiver has not taken yet.', {
  id: z
    .string()
    .max(LONGEST.word)
    .describe('The id, which stays the same if the notification is sent again.'),
  receiver: receiverName,
  event: z.string().max(LONGEST.word).describe('The event that the notification is about.'),
  message: z.string().max(LONGEST_MESSAGE).describe('The text of the notification.'),
  at: time('When the event happened.'),
  batch: text('The message that the notification is sent with.', LONGEST.word),
});

const triedSchema = object('The last message to one receiver.', {
  receiver: receiverName,
  at: time('When the leader was about to send the message.'),
});

const notificationsSchema = object(
  'The notifications to the receivers of the policy. The next leader continues with them.',
  {
    told: toldSchema.exactOptional(),
    queue: optional(
      'The notifications that are not sent yet, the oldest first.',
      z.array(queuedSchema).max(MOST.queued),
    ),
    tried: optional('When messages were sent.', z.array(triedSchema).max(MOST.tried)),
  },
);

const statusSchema = object('The status. Only the controller writes it.', {
  observedGeneration: optional('The generation of the spec that the status describes.', z.int()),
  planGeneration: optional("The plan's `metadata.generation` that the status describes.", z.int()),
  phase: choice(
    'The phase of the plan, in the words of `refit status`. `deleted`: the plan was deleted while it ran.',
    'new',
    'running',
    'done',
    'failed',
    'incomplete',
    'invalid',
    'edited',
    'differs',
    'empty',
    'deleted',
  ),
  version: text('The version that the nodes are upgraded to.', LONGEST.reference),
  counts: countsSchema.exactOptional(),
  progress: text('The targets that are done, and all targets, such as `5/8`.', LONGEST.word),
  percent: whole('The share of targets that are done.', 100),
  eta: etaSchema.exactOptional(),
  wave: waveSchema.exactOptional(),
  waiting: waitingSchema.exactOptional(),
  planDeleted: optional(
    'When the plan was found to be deleted.',
    time('When the deletion was found.'),
  ),
  conditions: conditionsSchema.exactOptional(),
  checks: optional(
    'The results of the health checks of the policy, at most a minute old; absent once the plan has ended.',
    z.array(checkSchema).max(MOST.checks).meta(byKey('name')),
  ),
  hooks: optional(
    'The hooks of the policy that run or have failed, at most 50. A failure stays until its target is tried again.',
    z.array(hookSchema).max(MOST.hooks).meta(byKey('id')),
  ),
  silences: optional(
    'The silences of the policy for the nodes in progress, at most 100, those with a problem first.',
    z.array(silenceSchema).max(MOST.silences),
  ),
  wayBack: wayBackSchema.exactOptional(),
  notifications: notificationsSchema.exactOptional(),
  history: optional('The last ten runs, the newest first.', z.array(runSchema).max(MOST.runs)),
});

export const nodeRolloutSchema = object(
  'Shows the progress of a plan, and keeps the history of its runs. The controller creates one for each plan, and keeps it for 30 days after ' +
    'the plan was deleted.',
  { spec: specSchema, status: statusSchema.exactOptional() },
);

export type NodeRolloutStatus = z.input<typeof statusSchema>;
export type NodeRolloutRun = z.input<typeof runSchema>;
export type NodeRollout = KubeObject & z.input<typeof nodeRolloutSchema>;
