/** Asks the API server what a user may do. */
import type { KubeClient } from '../kube/client.ts';
import { clusterScoped, type KubeObject } from '../kube/resources.ts';

/** What a user may do, in the words of a SubjectAccessReview. */
export interface AccessQuestion {
  readonly verb: string;
  readonly group?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly name?: string;
  readonly namespace?: string;
  /** A path without an object, in place of all other members. */
  readonly path?: string;
}

/** An object in which the API server answers such a question. */
export interface AccessReview extends KubeObject {
  readonly spec: object;
  readonly status?: { readonly allowed?: boolean };
}

/** The API server stores no such object, although the API calls the question a creation. */
export const accessReviews = clusterScoped<AccessReview>(
  'authorization.k8s.io/v1',
  'SubjectAccessReview',
);

/** With such an object, users ask about their own rights. The API server lets every user with an identity ask. */
const ownAccessReviews = clusterScoped<AccessReview>(
  'authorization.k8s.io/v1',
  'SelfSubjectAccessReview',
);

/** Resolves with whether the API server lets the user of the client do this. */
export async function mayI(
  client: Pick<KubeClient, 'create'>,
  question: AccessQuestion,
  abort: AbortSignal,
): Promise<boolean> {
  const review: AccessReview = { metadata: { name: '' }, spec: attributesOf(question) };
  const { status } = await client.create(ownAccessReviews, review, { abort });
  return status?.allowed === true;
}

/** Returns the question whether the user may do this. */
export function reviewOf(user: string, question: AccessQuestion): AccessReview {
  const spec = { user, groups: groupsOf(user), ...attributesOf(question) };
  return { metadata: { name: '' }, spec };
}

function attributesOf({ verb, path, ...resourceAttributes }: AccessQuestion): object {
  return path === undefined
    ? { resourceAttributes: { verb, ...resourceAttributes } }
    : { nonResourceAttributes: { verb, path } };
}

/** Returns the groups that the API server adds to the user of a ServiceAccount. */
function groupsOf(user: string): string[] {
  const [, namespace] = /^system:serviceaccount:([^:]+):/.exec(user) ?? [];
  if (namespace === undefined) return ['system:authenticated'];
  return ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
}
