/**
 * Runs `refit credentials controlnode`, which makes rights and credentials for the agent on one
 * controller.
 */
import { X509Certificate } from 'node:crypto';
import { type ClusterFlags, loadChosenCluster } from '../../kube/config/kubeconfig.ts';
import { systemClock as clock, rfc3339 } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { type Cli, inCluster } from '../cluster-command.ts';
import { applyObjects } from '../cluster-objects.ts';
import { controlNodeRoles, objectsIn } from '../manifests.ts';
import { issueCertificate } from './issue.ts';
import { execCredential, kubeconfigWith, withCertificate } from './kubeconfig.ts';

interface CredentialsFlags extends ClusterFlags {
  readonly node?: string;
  /** The validity of the credentials in milliseconds. */
  readonly duration: number;
  readonly output: 'kubeconfig' | 'exec-credential';
}

/** Matches the names of nodes (RFC 1123 subdomains). They become a part of manifests. */
const NAME = /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/;
/** The API server accepts no certificate that is valid for a shorter time. */
const LEAST_MS = 600_000;
/**
 * The API server accepts a number of seconds that fits into 32 bits. This is the largest number of whole hours that
 * fits.
 */
const MOST_MS = 596_523 * 3_600_000;

/** The client that runs an exec plugin requests the next certificate when this fraction of the validity is over. */
const USED_PART = 0.8;

/** Applies the rights, then prints the credentials. */
export async function controlNodeCredentials(
  name: string,
  flags: CredentialsFlags,
  cli: Cli,
): Promise<void> {
  const bad = [name, flags.node ?? name].find((text) => !NAME.test(text) || text.length > 253);
  const wanted = 'is not a name of a ControlNode or Node: use lower-case letters, digits, - and .';
  if (bad !== undefined) throw new RefitError('REFIT_USAGE', `${JSON.stringify(bad)} ${wanted}`);
  if (!(flags.duration >= LEAST_MS && flags.duration <= MOST_MS))
    throw new RefitError('REFIT_USAGE', '--duration is too short or too long: use 10m to 596523h');
  const config = await loadChosenCluster(flags);
  const issued = await inCluster(flags, { ...cli, write: () => undefined }, async (run) => {
    await applyObjects(objectsIn(controlNodeRoles(name, flags.node)), run);
    return await issueCertificate(`refit:controlnode:${name}`, Math.floor(flags.duration / 1000), {
      ...run,
      clock,
    });
  });
  if (flags.output === 'kubeconfig')
    cli.write(await kubeconfigWith(config, withCertificate(issued)));
  else {
    // The time counts from now, because signers set the beginning of the validity to a time in the past.
    const left = new X509Certificate(issued.certificate).validToDate.getTime() - clock.now();
    cli.write(execCredential(issued, rfc3339(clock.now() + left * USED_PART)));
  }
}
