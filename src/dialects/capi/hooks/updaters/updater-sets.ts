/** Finds the UpdaterSet for a Machine or a MachineSet, and the updaters of the set. */
import { X509Certificate } from 'node:crypto';
import {
  type Updater,
  type UpdaterSet,
  updaterSetKind,
  updaterSets,
} from '../../../../api/refit/updater-set.ts';
import type { KubeClient } from '../../../../kube/client.ts';
import { matchesLabels, selectorFault } from '../../../../kube/selectors.ts';
import { ifFound } from '../../../../kube/status-error.ts';
import type { Clock } from '../../../../util/clock.ts';
import { listIssues } from '../../../../util/describe-issue.ts';
import { ifPossible, RefitError } from '../../../../util/errors.ts';

export type Labels = Readonly<Record<string, string>>;

export interface CallParts {
  /** The client of the cluster with the Machines and the UpdaterSets. */
  readonly management: KubeClient;
  readonly clock: Clock;
  readonly abort: AbortSignal;
}

/** Resolves with all UpdaterSets; with none if their kind is not installed. */
export async function listSets({ management, abort }: CallParts): Promise<readonly UpdaterSet[]> {
  return (await ifFound(management.listAll(updaterSets, { abort })))?.items ?? [];
}

/**
 * Returns the UpdaterSet for these labels; undefined if there is none. Throws if there are several, or if the set is
 * invalid, because Refit must not guess which updaters the user wants.
 */
export function setFor(sets: readonly UpdaterSet[], labels: Labels): UpdaterSet | undefined {
  const isMeant = ({ spec: { selector = {} } }: UpdaterSet) =>
    selectorFault(selector) !== undefined || matchesLabels(selector, labels);
  const [set, second] = sets.filter(isMeant);
  if (!set) return undefined;
  const { name } = set.metadata;
  if (second) {
    const names = `UpdaterSets ${name} and ${second.metadata.name}`;
    const hint = 'change spec.selector of one of them';
    throw new RefitError('REFIT_USAGE', `${names} are both for these labels`, { hint });
  }
  const [problem] = setProblems(set);
  if (problem !== undefined) throw new RefitError('REFIT_USAGE', `UpdaterSet ${name}: ${problem}`);
  return set;
}

export function updatersFor({ spec }: UpdaterSet, labels: Labels): readonly Updater[] {
  return spec.updaters.filter(({ selector }) => matchesLabels(selector ?? {}, labels));
}

/**
 * Returns the problems of a set, each with its field and a valid value. It also checks what the API server does not
 * check.
 */
export function setProblems({ spec }: UpdaterSet): string[] {
  const { error } = updaterSetKind.schema.safeParse({ spec }, { reportInput: true });
  if (error) return listIssues(error, 'the UpdaterSet');
  const names = spec.updaters.map(({ name }) => name);
  const refits = spec.updaters.filter(({ refit }) => refit);
  const selectors = [spec, ...spec.updaters].map(({ selector }, index) => {
    const fault = selectorFault(selector);
    const field = index === 0 ? 'spec' : `spec.updaters[${index - 1}]`;
    return fault === undefined ? [] : [`${field}.selector: ${fault}`];
  });
  return [
    ...selectors.flat(),
    ...spec.updaters.flatMap((updater, index) => updaterProblems(updater, index, names)),
    ...(refits.length > 1
      ? [`spec.updaters: ${refits.length} are refit, expected at most one`]
      : []),
  ];
}

function updaterProblems(updater: Updater, index: number, names: readonly string[]): string[] {
  const { name, refit, nodeConfiguration, caBundle, clientCertificate, handlers } = updater;
  const field = `spec.updaters[${index}]`;
  const given = (['refit', 'nodeConfiguration', 'url', 'service'] as const).filter(
    (key) => updater[key] !== undefined,
  );
  const unclear = `${field}: sets ${given.join(' and ') || 'none of them'}, expected exactly one of refit, nodeConfiguration, url and service`;
  if (given.length !== 1) return [unclear];
  if (names.indexOf(name) !== index)
    return [`${field}.name: ${name} is used twice, expected a name that no other updater has`];
  if (refit ?? nodeConfiguration)
    return caBundle || clientCertificate || handlers
      ? [
          `${field}: has caBundle, clientCertificate or handlers, which are only for updaters with url or service`,
        ]
      : [];
  if (caBundle === undefined)
    return [`${field}.caBundle: is missing, expected the CA of its certificate`];
  const certificate = ifPossible(() => new X509Certificate(Buffer.from(caBundle, 'base64')));
  return certificate ? [] : [`${field}.caBundle: is not a certificate, expected base64 of PEM`];
}
