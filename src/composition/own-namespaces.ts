/** Says which namespaces belong to a process, and in which other namespaces it may create the Jobs of policies. */
import type { Dialect } from '../engine/contract/dialect.ts';
import type { ClusterConfig } from '../kube/config/cluster-config.ts';
import { type JobNamespaces, jobNamespaces, listedNamespaces } from '../kube/job-namespaces.ts';
import { RefitError } from '../util/errors.ts';

/** The namespace of the files in deploy/. */
const HOME = 'refit-system';

/** Returns the namespace of the process, in which it reads the Secrets that policies name. */
export function homeOf({ namespace }: Pick<ClusterConfig, 'namespace'>): string {
  return namespace === 'default' ? HOME : namespace;
}

interface Parts {
  readonly config: Pick<ClusterConfig, 'namespace'>;
  readonly lease?: { readonly namespace: string } | undefined;
  /** The namespaces that the administrator has listed. */
  readonly jobNamespaces?: readonly string[] | undefined;
}

/**
 * Returns the namespaces in which this process may create Jobs of policies. Never one in which it has rights for
 * another reason: its own, the one of its Lease, and those of its plans. Throws REFIT_USAGE if the administrator has
 * listed such a namespace.
 */
export function jobNamespacesOf(
  { config, lease, jobNamespaces: listed }: Parts,
  dialects: readonly Dialect[] = [],
): JobNamespaces {
  const ofDialects = dialects.flatMap(({ planObjects, watched }) => [
    planObjects?.namespace,
    ...watched.map(({ namespace }) => namespace),
  ]);
  const reserved = [homeOf(config), lease?.namespace, ...ofDialects].filter(
    (each) => each !== undefined,
  );
  const fault = listedNamespaces(listed?.join(',') ?? '', reserved);
  if (typeof fault === 'string')
    throw new RefitError('REFIT_USAGE', fault, {
      hint: 'list namespaces in which only Jobs of policies run',
    });
  return jobNamespaces({ listed, reserved });
}
