/** Finds out the name of the user of this process, as the API server or this host knows it. */
import { hostname, userInfo } from 'node:os';
import type { Reading } from '../kube/client.ts';
import type { ClusterFlags } from '../kube/config/kubeconfig.ts';
import { clusterScoped, type KubeObject } from '../kube/resources.ts';
import { StatusError } from '../kube/status-error.ts';
import { ifPossible, unlessError } from '../util/errors.ts';
import { connect, type SessionParts } from './status/status-session.ts';

interface SelfSubjectReview extends KubeObject {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

const selfSubjectReviews = clusterScoped<SelfSubjectReview>(
  'authentication.k8s.io/v1',
  'SelfSubjectReview',
);

/** Returns the name of the user on this host; `uid-<number>` in a container whose passwd file does not contain the user. */
export function userName(
  read: () => { readonly username: string } = userInfo,
  uid = process.getuid?.(),
): string {
  return ifPossible(read)?.username ?? `uid-${uid}`;
}

/**
 * Resolves with the name by which the API server knows the user. If the API server does not report that name, resolves
 * with `<user>@<host>` for the user on this host.
 */
export async function askUserName(reading: Reading): Promise<string> {
  const asked = askOwnName(reading);
  const answer = await unlessError((thrown) => thrown instanceof StatusError)(asked);
  return answer || `${userName()}@${hostname()}`;
}

/**
 * Resolves with the name by which the API server knows the user; with an empty text if the answer has no name. Rejects if the API server
 * refuses the request.
 */
export async function askOwnName({ client, abort }: Reading, deadlineMs?: number): Promise<string> {
  const { group, version, kind } = selfSubjectReviews;
  const question = { apiVersion: `${group}/${version}`, kind, metadata: { name: '' } };
  const { status } = await client.create(selfSubjectReviews, question, { abort, deadlineMs });
  return status?.userInfo?.username ?? '';
}

/** Resolves with the name of the user who runs a command with these flags. The command writes the name into objects. */
export async function nameOfUser(
  flags: ClusterFlags,
  { abort }: Pick<SessionParts, 'abort'>,
): Promise<string> {
  using client = await connect(flags, 'refit-control');
  return await askUserName({ client, abort });
}
