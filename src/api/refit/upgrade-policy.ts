/** Defines schema and types of the UpgradePolicy, which holds the settings of Refit for which plans have no field. */
import { z } from 'zod';
import type { KubeObject } from '../../kube/resources.ts';
import {
  BY_TYPE,
  choice,
  flag,
  LONGEST,
  list,
  nameOfNamespace,
  object,
  optional,
  text,
  time,
  whole,
} from '../crd.ts';
import { drainSchema } from './drain-rules.ts';
import { healthSchema } from './health-rules.ts';
import { hooksSchema } from './hook-rules.ts';
import { notifySchema } from './notify-rules.ts';
import {
  boundedSelectorSchema,
  duration,
  durationOrZero,
  durationSchema,
  isBelow,
  numberOrShare,
  rules,
  SHORT,
} from './policy-values.ts';
import { silencesSchema } from './silence-rules.ts';
import { wavesSchema } from './wave-rules.ts';

const conditionSchema = object('One condition.', {
  type: z.string().max(LONGEST.conditionType).describe('What the condition is about.'),
  status: z.enum(['True', 'False', 'Unknown']).describe('Whether the condition is true.'),
  observedGeneration: optional('The generation of the spec that the condition describes.', z.int()),
  lastTransitionTime: time('When `status` last changed.').exactOptional(),
  reason: text('The reason, as one word.', LONGEST.reason),
  message: text('The reason, as a sentence.'),
});

export const conditionsSchema = z
  .array(conditionSchema)
  .meta(BY_TYPE)
  .describe('The current conditions.');

const TIME_ZONE = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;
const MOMENT =
  /^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2}))?$/;
/** Matches the key of a label, or a key and a value with `=` between them. */
const KEY_OR_PAIR = /^([a-z0-9.-]+[/])?[A-Za-z0-9._-]+(=[A-Za-z0-9._-]*)?$/;
/** Matches the key of a label. */
const KEY_ONLY = /^([a-z0-9.-]+[/])?[A-Za-z0-9._-]+$/;
const WANTED_KEY = 'must be the key of a label such as topology.kubernetes.io/zone';
const WANTED_LABEL = 'must be the key of a label such as topology.kubernetes.io/zone, or key=value';
const LONGEST_PAIR = 381;
/**
 * Matches one certificate and nothing else. If the field also accepted a private key, everyone who can read the policy
 * could read the key.
 */
const PEM = /^-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+\n-----END CERTIFICATE-----\n?$/;
const SET = { 'x-kubernetes-list-type': 'set' };
/** The maximum number of entries in a list. Without this limit, a policy could make each decision slow. */
const MANY = 100;
/** The maximum number of attempts to upgrade one node. */
const MOST_ATTEMPTS = 10;

/** Policies select plans by these names of their dialects. */
export const DIALECT_NAMES = ['autopilot', 'cattle', 'kubeadm', 'capi'] as const;
export type DialectName = (typeof DIALECT_NAMES)[number];

/** The other tools with which a policy can coordinate upgrades. */
const TOOL_NAMES = [
  'ClusterAutoscaler',
  'Karpenter',
  'Kured',
  'GPUOperator',
  'DisruptionLease',
] as const;

const planSchema = object(
  'Every field that is set must match; an entry without fields matches all plans.',
  {
    dialect: optional('Plans of this kind only.', z.enum(DIALECT_NAMES)),
    namespace: nameOfNamespace('Plans of this namespace only.').exactOptional(),
    name: text('The plan of this name only.', LONGEST.name),
  },
);

const pinSchema = object('One pin.', {
  selector: boundedSelectorSchema.describe('The nodes with these labels.'),
  version: z
    .string()
    .min(1)
    .max(LONGEST.word)
    .describe(
      'The only version that a plan may move them to, such as `v1.36.3+k0s.0`. A version without a build such as `+k0s.0` allows every build of that version.',
    ),
});

const deadlinesSchema = object(
  'How long each step of one node may take, such as `90s` or `1h30m`. A node that takes longer has failed.',
  {
    answer: duration('The time from the signal to the first report of the agent; 5m by default.'),
    download: duration('The time for download and verification; 6h by default.'),
    drain: duration(
      'The time for the drain; 1h by default. `drain.onDeadline` says what happens after that.',
    ),
    apply: duration('The time for replacing the files; 5m by default.'),
    restart: duration(
      'The time until the restarted service reports the new version; 90s by default. After that the agent rolls back.',
    ),
    ready: duration('The time until the node and the API servers are ready again; 10m by default.'),
    target: duration(
      'The time for all steps of one node together; by default the sum of the other deadlines, about 7h30m.',
    ),
  },
);

const timeZoneSchema = z
  .string()
  .regex(TIME_ZONE, 'is not the name of a time zone; use for example Europe/Berlin or UTC')
  .max(LONGEST.word)
  .describe('Name of a time zone, such as `Europe/Berlin` or `UTC`.');

export const WEEKDAYS = [
  'Monday',
  'Tuesday',
  'Wednesday',
  'Thursday',
  'Friday',
  'Saturday',
  'Sunday',
] as const;

const windowSchema = object('One window.', {
  days: list('The days on which the window opens; every day by default.', z.enum(WEEKDAYS)).meta(
    SET,
  ),
  start: z
    .string()
    .regex(
      /^([01][0-9]|2[0-3]):[0-5][0-9]$/,
      'is not a time of day; use hours and minutes with two digits each, for example 09:05',
    )
    .max(SHORT)
    .describe('When the window opens, such as `22:00`.'),
  length: durationSchema
    .meta(rules([isBelow('168h'), 'must be a time above zero and up to 168h, such as 4h']))
    .describe('How long the window stays open, such as `4h`; it may cross midnight.'),
  timeZone: timeZoneSchema,
});

/** Accepts only days that exist. CEL fails to parse a day such as the 30th of February. */
const isMoment =
  "timestamp(self.contains('T') ? self : self + 'T00:00:00Z') > timestamp('0001-01-01T00:00:00Z')";
const momentSchema = z
  .string()
  .regex(MOMENT, 'is neither a date such as 2026-12-20 nor a time such as 2026-12-20T18:00:00Z')
  .max(SHORT)
  .meta(
    rules([
      isMoment,
      'must be a date of the calendar such as 2026-12-20, or a time such as 2026-12-20T18:00:00Z',
    ]),
  );
/** If one end is a date and the other a time, the order depends on the time zone. The controller checks that case. */
const isInOrder =
  "self.from.contains('T') != self.to.contains('T') || " +
  "(self.from.contains('T') ? timestamp(self.from) < timestamp(self.to) : self.from <= self.to)";

const blackoutSchema = object('One period.', {
  from: momentSchema.describe(
    'A date such as `2026-12-20`, or a time such as `2026-12-20T18:00:00Z`.',
  ),
  to: momentSchema.describe('A date, which is included, or a time.'),
  timeZone: optional('The time zone of the dates; UTC by default.', timeZoneSchema),
}).meta(rules([isInOrder, '`to` must be after `from`']));

/** Without a drain a hook after the drain would never run, and nobody would notice. */
const HAS_DRAIN_FOR_HOOKS =
  '!has(self.drain) || !has(self.drain.enabled) || self.drain.enabled || !has(self.hooks) || ' +
  "!self.hooks.exists(hook, hook.when == 'AfterDrain')";
const WANTED_DRAIN =
  'a hook with `when: AfterDrain` needs a drain, but `drain.enabled` is false; use `BeforeRestart`';

export const upgradePolicySpecSchema = object(
  'The settings for the plans that the policy covers.',
  {
    plans: optional(
      'The plans that the policy covers; all by default. When several policies match a plan, the most specific one counts.',
      z.array(planSchema).max(MANY),
    ),
    paused: flag('`true`: no node starts, and nodes in progress finish.'),
    failureBudget: optional(
      'How many workers may fail before the plan stops, as a number or a share of its workers such as `10%`, rounded down; 0 by default. A ' +
        'failed controller always stops it.',
      numberOrShare(0),
    ),
    maxConsecutiveFailures: whole(
      'How many workers may fail one after the other before the plan stops, even within `failureBudget`; no such limit by default.',
    ),
    onFailure: choice(
      'What happens when failures have used up the budget. `Stop`, the default: the plan ends. `Pause`: nothing new starts until failed nodes are tried again ' +
        '(`refit retry`), the budget is raised or the plan is aborted. `RollBack`: a k0s Plan ends, and the leader takes its upgraded nodes back to their ' +
        'earlier versions, once. If that is not possible, and in other plans, it acts as `Stop`.',
      'Stop',
      'Pause',
      'RollBack',
    ),
    retry: object(
      'Retries failed nodes of k0s Plans, kubeadm hosts and Machines automatically; never by default. A worker counts against the budgets once its attempts are used up.',
      {
        attempts: z
          .int()
          .min(1)
          .max(MOST_ATTEMPTS)
          .describe('How often a node is tried, the first attempt included.'),
        backoff: duration(
          'The pause before the second attempt; 5m by default. Each further attempt doubles the pause, up to 24h.',
        ),
      },
    ).exactOptional(),
    waves: wavesSchema,
    spread: optional(
      'The key of a label, such as `topology.kubernetes.io/zone`: the next nodes come from each of its values in turn.',
      z
        .string()
        .max(LONGEST_PAIR)
        .refine((key) => KEY_ONLY.test(key), WANTED_KEY)
        .meta(rules([`self.matches('${KEY_ONLY.source}')`, WANTED_KEY])),
    ),
    perDomain: object('A limit for each value of a label.', {
      label: z
        .string()
        .max(LONGEST_PAIR)
        .refine((key) => KEY_ONLY.test(key), WANTED_KEY)
        .meta(rules([`self.matches('${KEY_ONLY.source}')`, WANTED_KEY]))
        .describe('The key of the label, such as `topology.kubernetes.io/zone`.'),
      maxUnavailable: numberOrShare(1).describe(
        'How many of the nodes with the same value may be unavailable, as in `spec.maxUnavailable`. Nodes without the label are not limited.',
      ),
    }).exactOptional(),
    maxBlockedNodes: whole(
      'How many nodes `drain.onDeadline: SkipNode` may leave out before the plan stops; no limit by default.',
    ),
    maxUnavailable: optional(
      'How many nodes may be not Ready or unschedulable for any reason, including the next one: a number, or a share of ' +
        'all nodes such as `10%`, rounded down, but at least one.',
      numberOrShare(1),
    ),
    order: optional(
      'Labels that put the nodes of a plan into groups, which start one after the other. `key`: groups in the order of its values; `key=value`: nodes with ' +
        'this label come first. Nodes without the label come last. Nodes of the control plane always come first, one at a time.',
      z
        .array(
          z
            .string()
            .max(LONGEST_PAIR)
            .refine((entry) => KEY_OR_PAIR.test(entry), WANTED_LABEL)
            .meta(rules([`self.matches('${KEY_OR_PAIR.source}')`, WANTED_LABEL])),
        )
        .max(MANY)
        .meta(SET),
    ),
    deadlines: deadlinesSchema.exactOptional(),
    drain: drainSchema.exactOptional(),
    health: healthSchema.exactOptional(),
    hooks: hooksSchema,
    notify: notifySchema,
    silences: silencesSchema,
    soak: durationOrZero(
      'How long a restarted service must keep running before its node counts as done; 5s by default.',
    ),
    keepPrevious: durationOrZero(
      'How long the agent of a k0s node keeps the previous binary and airgap bundle after the upgrade, such as `720h`; until the next upgrade or bundle by default. ' +
        '`0s`: the agent removes them as soon as the upgrade has succeeded.',
    ),
    etcdSnapshot: object(
      "Refit's agent on a k0s controller takes a snapshot of etcd before the first controller of a command is changed; none by default. The snapshot " +
        'has the keys and Secrets of the cluster, stays on that controller, and only root can read it.',
      {
        mode: choice(
          'What happens if there is no snapshot. `Try`, the default: the upgrade goes on, and its report says why there is none. ' +
            '`Require`: the controller fails before it is changed.',
          'Try',
          'Require',
        ),
        keep: optional(
          'How many snapshots stay on the controller that takes them; 2 by default.',
          z.int().min(1).max(100),
        ),
        timeout: duration('How long a snapshot may take; 10m by default.'),
        certificate: optional(
          'A certificate in PEM format. Only the owner of its private key can read the snapshots. They are encrypted by `openssl` on the controller.',
          z.string().regex(PEM, 'is not one certificate in PEM format').max(16_384),
        ),
      },
    ).exactOptional(),
    settle: duration(
      'How long an upgraded node must work, Ready and uncordoned, before its slot is free for the next node; no time by default.',
    ),
    versions: object('Which versions may follow each other.', {
      allow: list(
        'Version rules that plans may break.',
        z.enum(['SkippedMinor', 'Downgrade', 'KubeletAhead', 'KubeletBehind']),
      ).meta(SET),
      pin: optional(
        'Nodes that keep a version: no plan moves them to another one. `holds` says whether a plan waits for them at its end.',
        z.array(pinSchema).max(MANY),
      ),
      verify: choice(
        'When a node of a Rancher Plan that installs K3s or RKE2 is done. `Kubelet`, the default: its Job has succeeded, and its kubelet ' +
          'reports the version of the Plan before `deadlines.ready` has passed. `None`: its Job has succeeded, as in the original.',
        'Kubelet',
        'None',
      ),
      requireReady: flag(
        'The first node of a run starts only if the checks of `refit ready` find no blocker for the version of the plan. What the leader may not read does not ' +
          'count; `refit install rights ready` prints what it needs. `refit accept --check ready` lets the run start anyway.',
      ),
    }).exactOptional(),
    virtualNodes: choice(
      'Nodes without a kubelet on a host, such as those of virtual-kubelet and KWOK. `Ignore`, the default: no version rule judges ' +
        'them, and `maxUnavailable` does not count them. `Count`: they are treated as all other Nodes.',
      'Ignore',
      'Count',
    ),
    payloads: object('Rules for downloads.', {
      requireSha256: flag('Refuses plans with a download that has no `sha256`.'),
      requireHttps: flag('Refuses plans that download over plain `http`, and redirects to it.'),
      requireImageDigest: flag(
        'No node starts while an image that the plan runs on its nodes is named without its digest (`@sha256:…`). It applies to Plans of Rancher.',
      ),
      diskReserveMiB: whole(
        'MiB that a download leaves free on the disk of its node; the default is `--disk-reserve` of the agent.',
        1_048_576,
      ),
      problemTimeout: durationOrZero(
        'How long no node of a new plan starts while agents report that they cannot download its files; 5m by default. After that the nodes start anyway. `0s`: the plan does not wait.',
      ),
    }).exactOptional(),
    prefetch: choice(
      'Which waiting nodes download, verify and try out their version while others are upgraded. `Next` (the default): as ' +
        'many nodes as start next; `All`: up to 20 nodes; `None`: no node. Their services are not touched. Before the first node starts, some agents test the ' +
        'downloads: the agents of two nodes of each stage and platform, and of nodes that may have too little disk space; with `All`, and if the plan has windows of its own, the agents of all nodes; with `None` no agent.',
      'Next',
      'All',
      'None',
    ),
    agents: object('Which agents may carry out plans.', {
      require: choice(
        "`Refit`: a node starts only if Refit's agent acts on it, not k0s's own; any agent by default.",
        'Refit',
      ),
    }).exactOptional(),
    controllersNotReady: choice(
      'What happens if an API server is not ready before a controller starts. `Wait`, the default: the plan waits until it is ready. `End`: the ' +
        'plan ends; a k0s Plan then has the state `InconsistentTargets`, as with k0s before 1.35.1.',
      'Wait',
      'End',
    ),
    holds: choice(
      'What happens if every remaining worker is held (`refit hold NODE`) or pinned to another version (`versions.pin`). `Wait`, the default: the plan waits until the holds end. `Finish`: the plan ends ' +
        'as done without these workers, and names them. The plan always waits for a held controller.',
      'Wait',
      'Finish',
    ),
    goneNodes: choice(
      'What happens at the turn of a worker whose Node was deleted after the plan began. `End`, the default: the plan ends, as in the original. `Skip`: the plan ' +
        'goes on without this worker, and names it at its end. The plan always ends if a controller is missing.',
      'End',
      'Skip',
    ),
    newNodes: choice(
      'What happens to nodes that match a k0s Plan, but join after it began. `Leave`, the default: the Plan does not upgrade them, as in the original. `Include`: the Plan ' +
        'upgrades joining workers, too, but never a joining controller. Plans of Rancher upgrade all joining nodes.',
      'Leave',
      'Include',
    ),
    coordinate: list(
      'Other tools that disrupt nodes, and with which Refit coordinates its work; none by default. ' +
        'A node does not start while one of these tools works on it. The cluster autoscaler and Karpenter do not touch nodes in progress. ' +
        '`DisruptionLease` means any tool that takes the Lease refit-system/disruption. ' +
        'Refit holds this Lease, and with `Kured` the lock of Kured, while nodes are in progress.',
      z.enum(TOOL_NAMES),
    ).meta(SET),
    nodeConditions: flag(
      '`true`: Refit writes the lifecycle conditions of Kubernetes v1.37 on the Nodes of the plan (`MaintenancePlanned`, ' +
        '`MaintenanceInProgress`, `DrainInProgress`, `Drained`), which needs the rights of deploy/rbac-node-conditions.yaml. ' +
        '`false` is the default.',
    ),
    edits: object('What an edit of a plan does.', {
      afterEnd: choice(
        'What an edit does to a k0s Plan that has ended. `Ignore`, the default: it does nothing, as in the original. `Restart`: it starts a new rollout, whose ' +
          'id is that of the Plan with the generation of its spec, such as `2026-11-20-g7`.',
        'Ignore',
        'Restart',
      ),
      whileRunning: choice(
        'What an edit does to a k0s Plan that runs. `Follow`, the default: versions, downloads and limits apply to nodes that have not started, as in the ' +
          'original. `Ignore`: the Plan is carried out as it was when it started.',
        'Follow',
        'Ignore',
      ),
    }).exactOptional(),
    windows: optional('When nodes may start; always by default.', z.array(windowSchema).max(MANY)),
    blackouts: optional(
      'When no node starts, even inside a window.',
      z.array(blackoutSchema).max(MANY),
    ),
  },
).meta(rules([HAS_DRAIN_FOR_HOOKS, WANTED_DRAIN]));

/** The most characters of the sentences about fields without an effect. */
const LONGEST_EFFECTS = 2000;

const statusSchema = object('The status. Only the controller writes it.', {
  observedGeneration: optional('The generation of the spec that this status describes.', z.int()),
  covers: list(
    'Plans that the policy covers, as `<dialect>/<namespace>/<name>`; at most 100.',
    z.string().max(LONGEST.reference),
  ),
  noEffect: list(
    'For each kind of the covered plans: which fields of the policy have no effect on them, or only a part of it, and why.',
    object('The fields for one kind of plans.', {
      dialect: z.string().max(LONGEST.word).describe('The kind of the plans.'),
      message: z.string().max(LONGEST_EFFECTS).describe('Sentences about the fields.'),
    }),
  ),
  conditions: conditionsSchema.exactOptional(),
});

export const upgradePolicySchema = object(
  'Sets deadlines, windows, budgets and rules for plans. The defaults apply to plans that no policy covers.',
  { spec: upgradePolicySpecSchema, status: statusSchema.exactOptional() },
);

export type UpgradePolicySpec = z.input<typeof upgradePolicySpecSchema>;
export type UpgradePolicy = KubeObject & z.input<typeof upgradePolicySchema>;
