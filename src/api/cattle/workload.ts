/**
 * Defines the fields of a Plan of `upgrade.cattle.io` that describe the pod on each node: containers, volumes, drain, secrets.
 */
import { z } from 'zod';
import { strictObject } from '../../util/strict-object.ts';
import { flag, integer, list, object, optional } from '../crd.ts';
import { securityContextSchema, variableSchema, variablesSchema } from './core-types.ts';

const ATOMIC = { 'x-kubernetes-list-type': 'atomic' };

const requirementSchema = object('One requirement.', {
  key: z.string().describe('The label.'),
  operator: z.string().describe('`In`, `NotIn`, `Exists` or `DoesNotExist`.'),
  values: list('The values, with `In` and `NotIn` only.', z.string()).meta(ATOMIC),
});

export const labelSelectorSchema = strictObject({
  matchLabels: optional('The labels, with exactly these values.', z.record(z.string(), z.string())),
  matchExpressions: list('More requirements; each must be true.', requirementSchema).meta(ATOMIC),
}).meta({ 'x-kubernetes-map-type': 'atomic' });

const volumeSchema = object('A path of the node in the container.', {
  name: z.string().describe('Name of the volume.'),
  source: z.string().describe('Path on the node.'),
  destination: z.string().describe('Path in the container.'),
});

export const containerSchema = strictObject({
  image: z.string().describe('Image; without tag and digest, `status.latestVersion` is the tag.'),
  command: list('Entry point; that of the image by default.', z.string()),
  args: list('Arguments.', z.string()),
  envs: list('Environment variables: core EnvVar objects.', variableSchema),
  envFrom: list('Environment from ConfigMaps and Secrets.', variablesSchema),
  volumes: list('Paths of the node.', volumeSchema),
  securityContext: optional(
    'Core SecurityContext; replaces the default one as a whole.',
    securityContextSchema,
  ),
});

export const drainSchema = strictObject({
  timeout: optional(
    'How long the drain may take: a duration such as `90s`, or a number of nanoseconds. By default, it may take until the Job ends.',
    z.unknown().meta({ 'x-kubernetes-int-or-string': true }),
  ),
  gracePeriod: integer(
    'int32',
    "Seconds for each pod to terminate; negative or absent: the pod's own period.",
  ),
  deleteLocalData: flag('Earlier name of `deleteEmptydirData`.'),
  deleteEmptydirData: flag('Also evicts pods with emptyDir volumes; this is the default.'),
  ignoreDaemonSets: flag('Ignores pods of DaemonSets; this is the default.'),
  force: flag('Also deletes unmanaged pods.'),
  disableEviction: flag(
    'Deletes pods instead of evicting them, so PodDisruptionBudgets are ignored.',
  ),
  skipWaitForDeleteTimeout: optional(
    'Stops waiting for a pod this many seconds after its deletion; 0 waits for every pod.',
    z.int(),
  ),
  podSelector: optional('Evicts only these pods; all by default.', labelSelectorSchema),
});

export const secretSchema = object('A Secret to mount in every container.', {
  name: z.string().describe('Name of the Secret, in the namespace of the Plan.'),
  path: z.string().describe('Mount path, relative to `/run/system-upgrade/secrets`.'),
  ignoreUpdates: flag('Changes of the content of this Secret do not change `status.latestHash`.'),
  defaultMode: integer('int32', 'Mode of the files of the Secret.'),
});

export type ContainerSpec = z.input<typeof containerSchema>;
export type DrainSpec = z.input<typeof drainSchema>;
export type SecretSpec = z.input<typeof secretSchema>;
