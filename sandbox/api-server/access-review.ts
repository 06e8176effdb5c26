/** Answers `kubectl auth can-i`. The server knows no users, so everybody may do everything. */
import { isRecord } from '../../src/util/json.ts';
import { decodeObject } from './body.ts';
import { badRequest } from './failure.ts';
import { jsonReply, type Reply } from './reply.ts';
import type { ApiRequest } from './request.ts';

const API_VERSION = 'authorization.k8s.io/v1';
const KIND = 'SelfSubjectAccessReview';
const PATH = `/apis/${API_VERSION}/selfsubjectaccessreviews`;
const REASON = 'the API server in memory knows no users, and allows every request';

/** Returns undefined if the request asks for something else. */
export function reviewAccess(request: ApiRequest): Reply | undefined {
  if (request.method !== 'POST' || request.path !== PATH) return undefined;
  const { spec } = decodeObject(request, KIND);
  if (!isRecord(spec)) throw badRequest(`the ${KIND} has no spec`);
  const status = { allowed: true, reason: REASON };
  return jsonReply(201, { kind: KIND, apiVersion: API_VERSION, metadata: {}, spec, status });
}
