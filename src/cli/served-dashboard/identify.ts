/** Sends a token to the API server to find out who the owner of the token is. */

import type { ClusterFlags } from '../../kube/config/kubeconfig.ts';
import { describeProblem, isUnauthorized, isVerdict } from '../../kube/status-error.ts';
import { connect } from '../status/status-session.ts';
import { askOwnName } from '../user-name.ts';

export type TokenOwner =
  | { readonly kind: 'known'; readonly user: string }
  /** The API server does not accept the token. */
  | { readonly kind: 'refused'; readonly why: string }
  /** The owner is unknown, because the API server does not answer. */
  | { readonly kind: 'unanswered'; readonly why: string };

const ANONYMOUS = 'system:anonymous';
const DEADLINE_MS = 10_000;

export async function identify(
  connection: ClusterFlags,
  token: string,
  abort: AbortSignal,
): Promise<TokenOwner> {
  try {
    using client = await connect({ ...connection, token }, 'refit-dashboard');
    const user = await askOwnName({ client, abort }, DEADLINE_MS);
    if (user !== '' && user !== ANONYMOUS) return { kind: 'known', user };
    return { kind: 'refused', why: 'The API server does not say whose token this is.' };
  } catch (error) {
    if (isUnauthorized(error))
      return {
        kind: 'refused',
        why: 'The API server does not accept this token: it is invalid or has expired.',
      };
    const { line } = describeProblem(error);
    return { kind: isVerdict(error) ? 'refused' : 'unanswered', why: line };
  }
}
