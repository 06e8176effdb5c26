/** Owns the schema and the types of the UpgradePolicy: the switches of Refit that no plan has. */
import { z } from 'zod';
import type { Resource } from '../../kube/resources.ts';
import type { KubeObject } from '../../kube/types.ts';
import type { CustomKind } from '../crd.ts';
import { conditionsSchema } from './conditions.ts';

const DURATION = /^([0-9]+(ms|s|m|h))+$/;
const TIME_ZONE = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;
const MOMENT = /^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2}))?$/;
const PERCENT = /^([1-9][0-9]?|100)%$/;
const SET = { 'x-kubernetes-list-type': 'set' };
/** So that no policy makes each decision slow. */
const MANY = 100;

/** By which policies tell plans of different kinds apart. */
export const DIALECT_NAMES = ['autopilot', 'cattle', 'kubeadm', 'capi'] as const;

const duration = (what: string) => z.string().regex(DURATION).exactOptional().describe(what);

const planSchema = z
  .strictObject({
    dialect: z.enum(DIALECT_NAMES).exactOptional().describe('Plans of this kind only.'),
    namespace: z.string().exactOptional().describe('Plans of this namespace only.'),
    name: z.string().exactOptional().describe('The plan of this name only.'),
  })
  .describe('Every member that is given must match; one without any matches all plans.');

const deadlinesSchema = z
  .strictObject({
    answer: duration('Until the agent says its first word; 5m.'),
    download: duration('Until everything is downloaded and verified; 6h.'),
    drain: duration('Until the node is empty; 1h. See `drain.onDeadline`.'),
    apply: duration('Until the new files have taken the place of the old; 5m.'),
    restart: duration('Until the restarted service tells the new version, else the agent puts the old one back; 90s.'),
    ready: duration('Until the node and the API servers are ready again; 10m.'),
    target: duration('For everything on one node together; the sum of all the others, some 7h30m.'),
  })
  .describe('How long each step of one node may take before it has failed, such as `90s` or `1h30m`.');

const drainSchema = z
  .strictObject({
    enabled: z.boolean().exactOptional().describe('`false`: nodes are neither cordoned nor drained.'),
    localData: z
      .enum(['Evict', 'Refuse'])
      .exactOptional()
      .describe('Pods with an `emptyDir` volume; what it holds is lost. Evict where absent.'),
    unmanagedPods: z
      .enum(['Evict', 'Refuse'])
      .exactOptional()
      .describe('Pods without a controller; nobody creates them anew. Evict where absent.'),
    gracePeriodSeconds: z
      .int()
      .min(0)
      .max(86_400)
      .exactOptional()
      .describe("Time for each pod to end; the pod's own where absent."),
    onDeadline: z
      .enum(['Wait', 'Stop', 'Skip'])
      .exactOptional()
      .describe(
        'At `deadlines.drain`: go on for ever, end the plan, or leave the node out as one that failed. Stop where absent.',
      ),
    softTaint: z
      .boolean()
      .exactOptional()
      .describe('Nodes whose turn is still to come get a `PreferNoSchedule` taint, so that pods move once; `true`.'),
    uncordon: z
      .enum(['Ours', 'Always'])
      .exactOptional()
      .describe('Always: also a node that somebody else had cordoned. Ours where absent.'),
  })
  .describe('How nodes are emptied before they are updated.');

const timeZoneSchema = z.string().regex(TIME_ZONE).describe('Name of a time zone, such as `Europe/Berlin` or `UTC`.');

const windowSchema = z
  .strictObject({
    days: z
      .array(z.enum(['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']))
      .meta(SET)
      .exactOptional()
      .describe('The days on which it opens; every day where absent or empty.'),
    start: z
      .string()
      .regex(/^([01][0-9]|2[0-3]):[0-5][0-9]$/)
      .describe('When it opens, as `22:00`.'),
    length: z.string().regex(DURATION).describe('How long it stays open, such as `4h`; across midnight too.'),
    timeZone: timeZoneSchema,
  })
  .describe('One window.');

const blackoutSchema = z
  .strictObject({
    from: z.string().regex(MOMENT).describe('A date such as `2026-12-20`, or a time such as `2026-12-20T18:00:00Z`.'),
    to: z.string().regex(MOMENT).describe('A date, which counts whole, or a time.'),
    timeZone: timeZoneSchema.exactOptional().describe('In which dates are meant; UTC where absent.'),
  })
  .describe('One stretch of time.');

export const upgradePolicySpecSchema = z
  .strictObject({
    plans: z
      .array(planSchema)
      .max(MANY)
      .exactOptional()
      .describe(
        'The plans that the policy is for, all of them where absent; of several policies the one that names a plan most closely counts.',
      ),
    paused: z.boolean().exactOptional().describe('Nothing new starts; what is in the works finishes.'),
    failureBudget: z
      .int()
      .min(0)
      .exactOptional()
      .describe('Workers that may fail before the plan stops; 0. The first failed controller always stops it.'),
    maxUnavailable: z
      .union([z.int().min(1), z.string().regex(PERCENT)])
      .meta({ 'x-kubernetes-int-or-string': true, minimum: 1, pattern: PERCENT.source })
      .exactOptional()
      .describe(
        'Nodes that may be not Ready or unschedulable, whatever made them so, the next one included: a number, or a share ' +
          'of all nodes such as `10%`, rounded down but never below one.',
      ),
    deadlines: deadlinesSchema.exactOptional(),
    drain: drainSchema.exactOptional(),
    soak: duration('How long a restarted service must stay up before its node is done; 5s.'),
    versions: z
      .strictObject({
        allow: z
          .array(z.enum(['SkippedMinor', 'Downgrade', 'KubeletAhead']))
          .meta(SET)
          .exactOptional()
          .describe('Rules that plans may break.'),
      })
      .exactOptional()
      .describe('Which versions may follow each other.'),
    payloads: z
      .strictObject({
        requireSha256: z.boolean().exactOptional().describe('Plans with a download without `sha256` are refused.'),
        requireHttps: z
          .boolean()
          .exactOptional()
          .describe('Plans with a download by plain `http` are refused, and so are redirects to it.'),
      })
      .exactOptional()
      .describe('What is asked of downloads.'),
    windows: z.array(windowSchema).max(MANY).exactOptional().describe('When nodes may start; always where absent.'),
    blackouts: z.array(blackoutSchema).max(MANY).exactOptional().describe('When no node starts, in a window or not.'),
  })
  .describe('What plans are held to.');

const statusSchema = z
  .strictObject({
    observedGeneration: z.int().exactOptional().describe('The generation of the spec that the status speaks of.'),
    covers: z
      .array(z.string())
      .exactOptional()
      .describe('Plans that the policy counts for, as `<dialect>/<namespace>/<name>`; at most 100 are told.'),
    conditions: conditionsSchema.exactOptional(),
  })
  .describe('What became of the policy; written by the controller only.');

const upgradePolicySchema = z
  .strictObject({ spec: upgradePolicySpecSchema, status: statusSchema.exactOptional() })
  .describe('Holds plans to deadlines, windows, budgets and rules; a plan that none covers is held to the defaults.');

export type UpgradePolicySpec = z.input<typeof upgradePolicySpecSchema>;
export type UpgradePolicy = KubeObject & z.input<typeof upgradePolicySchema>;

export const upgradePolicies: Resource<UpgradePolicy> = {
  group: 'upgrade.refit.dev',
  version: 'v1alpha1',
  kind: 'UpgradePolicy',
  plural: 'upgradepolicies',
  namespaced: false,
};

export const upgradePolicyKind: CustomKind = {
  resource: upgradePolicies,
  schema: upgradePolicySchema,
  statusSubresource: true,
  columns: [
    { name: 'Accepted', type: 'string', jsonPath: ".status.conditions[?(@.type=='Accepted')].status" },
    { name: 'Paused', type: 'boolean', jsonPath: '.spec.paused' },
    { name: 'Covers', type: 'string', jsonPath: '.status.covers' },
    { name: 'Message', type: 'string', jsonPath: ".status.conditions[?(@.type=='Accepted')].message", priority: 1 },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
