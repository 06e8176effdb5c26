/** Defines schema and types of the Plan of Rancher's system-upgrade-controller, `upgrade.cattle.io/v1`. */
import { z } from 'zod';
import type { KubeObject } from '../../kube/resources.ts';
import { BY_TYPE, flag, integer, list, object, optional, text } from '../crd.ts';
import { referenceSchema, tolerationSchema } from './core-types.ts';
import { containerSchema, drainSchema, labelSelectorSchema, secretSchema } from './workload.ts';

/** The names of the days are in lower case, as the original requires. The digit 0 is Sunday. */
const DAYS = [
  '0 su sun sunday 1 mo mon monday 2 tu tue tuesday 3 we wed wednesday',
  '4 th thu thursday 5 fr fri friday 6 sa sat saturday',
].flatMap((line) => line.split(' '));

const specSchema = object('What runs on which nodes.', {
  concurrency: integer(
    'int64',
    'How many nodes are upgraded at a time. With 0, the default, no node is upgraded, and the Plan is complete.',
  ),
  jobActiveDeadlineSecs: integer(
    'int64',
    "Seconds that a Job may take; 0: no limit; negative or absent: the controller's default.",
  ),
  nodeSelector: optional(
    'Selects the nodes. Absent: no node; empty: all nodes with a host name.',
    labelSelectorSchema,
  ),
  serviceAccountName: text('Service account of the pods.'),
  channel: text('URL whose redirect names the version; ignored with `version`.'),
  version: text('The version; a `+` becomes a `-`.'),
  secrets: list('Secrets to mount in the containers.', secretSchema),
  tolerations: list(
    'Core Tolerations for the pods, in addition to the toleration for cordoned nodes.',
    tolerationSchema,
  ),
  exclusive: flag('Never runs on a node at the same time as another exclusive Plan.'),
  window: object('When nodes may start; nodes in progress finish.', {
    days: optional('Days of the week.', z.array(z.enum(DAYS)).min(1)),
    startTime: text('Time of day, such as `22:00`.'),
    endTime: text('Time of day, such as `06:00`.'),
    timeZone: text('IANA name; UTC by default.'),
  }).exactOptional(),
  prepare: optional('Runs before the node is cordoned or drained.', containerSchema),
  upgrade: containerSchema.describe('Does the upgrade.'),
  cordon: flag('Cordons the node before the upgrade; no effect with `drain`.'),
  drain: optional('Drains the node before the upgrade.', drainSchema),
  imagePullSecrets: list('Secrets to pull images with.', referenceSchema),
  postCompleteDelay: text(
    'Duration such as `30s`: how long a node keeps its slot after its Job is complete.',
  ),
  priorityClassName: text('Priority class of the pods.'),
  postCompleteLabels: optional(
    'Labels for upgraded nodes; `$(LATEST_VERSION)` and `$(LATEST_HASH)` are replaced.',
    z.record(z.string(), z.string()),
  ),
});

const conditionSchema = object('One condition.', {
  type: z
    .string()
    .describe('`Complete`, `Validated`, `LatestResolved`, or one that begins with `Refit`.'),
  status: z.string().describe('`True`, `False` or `Unknown`.'),
  lastUpdateTime: text('When status or message last changed.'),
  lastTransitionTime: text('Not used.'),
  reason: text('The reason, as one word.'),
  message: text('The reason, as a sentence.'),
});

export const cattlePlanSchema = object(
  'Runs a Job on each selected node, a limited number at a time.',
  {
    spec: specSchema.exactOptional(),
    status: object('The progress of the Plan; written by the controller only.', {
      conditions: list('The current conditions.', conditionSchema).meta(BY_TYPE),
      latestVersion: text('The version to install.'),
      latestHash: text('The label value of upgraded nodes.'),
      applying: list('Host names of the nodes in progress.', z.string()),
    }).exactOptional(),
  },
);

export type CattleCondition = z.input<typeof conditionSchema>;
export type CattlePlan = KubeObject & z.input<typeof cattlePlanSchema>;
