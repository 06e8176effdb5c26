/** Tests which rule of an API server is behind an answer with the code 403, by the words that API servers use. */
import { expect, test } from 'vitest';
import {
  describeProblem,
  type Forbidding,
  forbiddingOf,
  isMissingRight,
  StatusError,
} from './status-error.ts';

const POD = 'pods "backup" is forbidden:';
const forbidden = (message: string | undefined, code = 403) =>
  new StatusError({
    kind: 'Status',
    code,
    reason: 'Forbidden',
    ...(message !== undefined && { message }),
  });

test.each<[string, Forbidding, string | undefined]>([
  [
    'a right in a namespace',
    'right',
    'jobs.batch is forbidden: User "system:serviceaccount:a:b" cannot create resource "jobs" in API group "batch" in the namespace "n"',
  ],
  [
    'a right for the cluster',
    'right',
    'nodes "w1" is forbidden: User "jane" cannot patch resource "nodes" in API group "" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "x" not found',
  ],
  [
    'a right for a subresource',
    'right',
    `${POD} User "jane" cannot create resource "pods/eviction" in API group "" in the namespace "n"`,
  ],
  ['a right for a path', 'right', 'forbidden: User "system:anonymous" cannot get path "/version"'],
  [
    'a right to grant rights',
    'right',
    'roles.rbac.authorization.k8s.io "r" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""]}',
  ],
  ['a server that gives no reason', 'right', 'nodes is forbidden'],
  ['a proxy without a message', 'right', undefined],
  [
    'a quota that is used up',
    'quota',
    `${POD} exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1`,
  ],
  [
    'a quota that needs limits',
    'quota',
    `${POD} failed quota: few: must specify limits.cpu for: c`,
  ],
  [
    'PodSecurity',
    'admission',
    `${POD} violates PodSecurity "restricted:latest": privileged (container "c" must not set securityContext.privileged=true)`,
  ],
  [
    'a webhook',
    'admission',
    'admission webhook "a.example.com" denied the request: today User "jane" cannot create resource "pods" here',
  ],
  [
    'a ValidatingAdmissionPolicy',
    'admission',
    `${POD} ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
  ],
  [
    'a missing ServiceAccount',
    'admission',
    `${POD} error looking up service account n/x: serviceaccount "x" not found`,
  ],
  [
    'a namespace that is being deleted',
    'admission',
    `${POD} unable to create new content in namespace n because it is being terminated`,
  ],
  [
    'a node that changes another node',
    'admission',
    'nodes "w1" is forbidden: node "w2" is not allowed to modify node "w1"',
  ],
])('the words of %s mean: %s', (_, expected, message) => {
  expect(forbiddingOf(forbidden(message))).toBe(expected);
  expect(isMissingRight(forbidden(message))).toBe(expected === 'right');
});

test('other errors are no refusal by one of these rules', () => {
  expect(forbiddingOf(new Error('x'))).toBeUndefined();
  const missing = new StatusError({ kind: 'Status', code: 404, reason: 'NotFound' });
  expect([forbiddingOf(missing), isMissingRight(missing)]).toEqual([undefined, false]);
});

test('a quota that refuses a command is not told as a missing permission', () => {
  const error = describeProblem(forbidden(`${POD} exceeded quota: few, requested: pods=1`));
  expect(error.code).toBe('REFIT_CONTROL');
  expect(error.line).toContain('raise the quota');
});
