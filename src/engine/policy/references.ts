/** Finds the Secrets, namespaces and other tools to which a policy refers, and what is wrong with them. */
import type { UpgradePolicy } from '../../api/refit/upgrade-policy.ts';
import { presenceProblems } from '../../coordination/tool-presence.ts';
import { lookAheadAtCheck } from '../../health/ask-jobs.ts';
import type { JobCheck } from '../../health/checks.ts';
import { lookAheadAtJob } from '../../hooks/job-hook.ts';
import type { Hook } from '../../hooks/rules.ts';
import type { KubeClient } from '../../kube/client.ts';
import { readSecret, SecretUnavailable } from '../../kube/read-secret.ts';
import type { TemplateJobs } from '../../kube/template-jobs.ts';
import type { Receiver } from '../../notify/receivers.ts';
import type { Alertmanager } from '../../silences/alertmanager.ts';
import { messageOf } from '../../util/errors.ts';
import type { RolloutPolicy } from './rollout-policy.ts';

/** The type of the condition of a policy that says whether everything to which the policy refers can be used. */
export const RESOLVED_REFS = 'ResolvedRefs';

/**
 * Returns a sentence about the references of the policy that its controller cannot use; undefined if there are none, or
 * if the controller has not looked at this generation of the policy.
 */
export function unresolvedIn(policy: UpgradePolicy): string | undefined {
  const message = unresolvedOf(policy);
  return message === undefined ? undefined : `UpgradePolicy ${policy.metadata.name}: ${message}`;
}

/** Returns the same as `unresolvedIn`, without the name of the policy. */
export function unresolvedOf(policy: UpgradePolicy): string | undefined {
  const found = resolvedCondition(policy);
  return found?.status === 'False' ? (found.message ?? '') : undefined;
}

/** Returns true if a controller has looked at what this generation of the policy refers to. */
export function wasResolved(policy: UpgradePolicy): boolean {
  return resolvedCondition(policy) !== undefined;
}

function resolvedCondition({ metadata, status }: UpgradePolicy) {
  return status?.conditions?.find(
    ({ type, observedGeneration }) =>
      type === RESOLVED_REFS && observedGeneration === metadata.generation,
  );
}

/** A reference of a policy to a Secret in the namespace of the controller. */
interface SecretReference {
  /** The part of the policy that has the reference, such as `receiver chat`. */
  readonly of: string;
  readonly name: string;
  /** The key that the Secret must have; undefined if no key is required. */
  readonly key?: string;
}

/** Returns the references of the policy to Secrets. */
function secretsOf({ notify = [], silences = [], health, hooks = [] }: RolloutPolicy) {
  const named = (of: string, name: string | undefined, key?: string): SecretReference[] =>
    name === undefined ? [] : [{ of, name, ...(key === undefined ? {} : { key }) }];
  return [
    ...notify.flatMap(secretsOfReceiver),
    ...silences.flatMap(({ name, secretName }) => named(`silence ${name}`, secretName)),
    ...(health?.checks ?? []).flatMap((check) =>
      named(`health check ${check.name}`, 'secretName' in check ? check.secretName : undefined),
    ),
    ...hooks.flatMap(({ name, action }) =>
      action.kind === 'webhook' ? named(`hook ${name}`, action.secretName, 'key') : [],
    ),
  ];
}

function secretsOfReceiver(receiver: Receiver): SecretReference[] {
  const of = `receiver ${receiver.name}`;
  if (receiver.type === 'Email')
    return receiver.secretName === undefined ? [] : [{ of, name: receiver.secretName }];
  if (receiver.type === 'Matrix') return [{ of, ...receiver.token }];
  const { address, signingKey } = receiver;
  return [
    ...('secret' in address ? [address.secret] : []),
    ...(signingKey ? [signingKey] : []),
  ].map((secret) => ({ of, ...secret }));
}

interface Tools {
  readonly client: KubeClient;
  /** The namespace of the Secrets. */
  readonly namespace: string;
  readonly templates: Pick<TemplateJobs, 'rehearse'>;
  /** The servers of silences; undefined if this process sends them no requests. */
  readonly alertmanager?: Pick<Alertmanager, 'reach'> | undefined;
}

/** Returns true if the policy refers to a Secret, to another tool or to a server of silences, or creates Jobs in a namespace. */
export function hasReferences(policy: RolloutPolicy): boolean {
  const { coordinate = [], silences = [] } = policy;
  return (
    [secretsOf, jobHooksOf, jobChecksOf].some((of) => of(policy).length > 0) ||
    coordinate.length + silences.length > 0
  );
}

/** Resolves with a clause for each reference of the policy that cannot be used. */
export async function referenceProblems(
  tools: Tools,
  policy: RolloutPolicy,
  now: number,
  abort: AbortSignal,
): Promise<string[]> {
  const found = await Promise.all([
    ...secretsOf(policy).map(async (each) => {
      const problem = await problemOfSecret(tools, each, abort);
      return problem === undefined ? [] : [`${each.of}: ${problem}`];
    }),
    ...jobHooksOf(policy).map(async (hook) => {
      const problem = await lookAheadAtJob(tools.templates, hook, abort);
      return problem === undefined ? [] : [`hook ${hook.name}: ${problem}`];
    }),
    presenceProblems(tools.client, policy.coordinate ?? [], abort),
    ...(policy.silences ?? []).map(async (rule) => {
      const problem = await tools.alertmanager?.reach(rule, abort).then(() => undefined, messageOf);
      abort.throwIfAborted();
      return problem === undefined ? [] : [`silence ${rule.name}: ${problem}`];
    }),
    ...jobChecksOf(policy).map(async (check) => {
      const need = { policy: policy.name ?? '', now };
      const problem = await lookAheadAtCheck(tools.templates, check, need, abort);
      return problem === undefined ? [] : [`health check ${check.name}: ${problem}`];
    }),
  ]);
  return [...new Set(found.flat())];
}

function jobHooksOf({ hooks = [] }: RolloutPolicy): Hook[] {
  return hooks.filter(({ action }) => action.kind === 'job');
}

function jobChecksOf({ health }: RolloutPolicy): JobCheck[] {
  return (health?.checks ?? []).filter((check) => check.kind === 'jobs');
}

async function problemOfSecret(
  { client, namespace }: Tools,
  { name, key }: SecretReference,
  abort: AbortSignal,
): Promise<string | undefined> {
  try {
    const valueOf = await readSecret({ client, namespace, name }, abort);
    const isEmpty = key !== undefined && valueOf(key).length === 0;
    return isEmpty ? `Secret ${namespace}/${name} has no value ${key}` : undefined;
  } catch (error) {
    if (error instanceof SecretUnavailable) return error.message;
    throw error;
  }
}
