/**
 * Answers `kubectl auth can-i` and `kubectl auth whoami`. The server knows no users, so everybody may do everything. It
 * listens only on this machine, so the caller is the user of this machine.
 */
import { hostname } from 'node:os';
import { userName } from '../../src/cli/user-name.ts';
import { isRecord } from '../../src/util/json.ts';
import { decodeObject } from './body.ts';
import { badRequest } from './failure.ts';
import { jsonReply, type Reply } from './reply.ts';
import type { ApiRequest } from './request.ts';

const AUTHORIZATION = 'authorization.k8s.io/v1';
const AUTHENTICATION = 'authentication.k8s.io/v1';
const REASON = 'the API server in memory knows no users, and allows every request';

/** The answers by path. */
const REVIEWS: Readonly<Record<string, (request: ApiRequest) => object>> = {
  [`/apis/${AUTHORIZATION}/selfsubjectaccessreviews`]: (request) => {
    const kind = 'SelfSubjectAccessReview';
    const { spec } = decodeObject(request, kind);
    if (!isRecord(spec)) throw badRequest(`the ${kind} has no spec`);
    return { kind, apiVersion: AUTHORIZATION, spec, status: { allowed: true, reason: REASON } };
  },
  [`/apis/${AUTHORIZATION}/selfsubjectrulesreviews`]: () => ({
    kind: 'SelfSubjectRulesReview',
    apiVersion: AUTHORIZATION,
    spec: {},
    status: {
      incomplete: false,
      resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
      nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
    },
  }),
  [`/apis/${AUTHENTICATION}/selfsubjectreviews`]: () => ({
    kind: 'SelfSubjectReview',
    apiVersion: AUTHENTICATION,
    status: {
      userInfo: { username: `${userName()}@${hostname()}`, groups: ['system:authenticated'] },
    },
  }),
};

/** Returns undefined if the request asks for something else. */
export function reviewAccess(request: ApiRequest): Reply | undefined {
  if (request.method !== 'POST') return undefined;
  const review = REVIEWS[request.path]?.(request);
  return review && jsonReply(201, { metadata: {}, ...review });
}
