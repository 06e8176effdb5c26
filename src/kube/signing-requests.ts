/** Requests to sign a certificate, and how one is approved. */
import { type Condition, clusterScoped, type KubeObject } from './resources.ts';

export interface SigningRequest extends KubeObject {
  readonly spec: {
    /** Base64 of PEM. */
    readonly request: string;
    readonly signerName: string;
    readonly usages?: readonly string[];
    readonly expirationSeconds?: number;
    /** Who made it, by the API server, as are the groups. */
    readonly username?: string;
    readonly groups?: readonly string[];
  };
  readonly status?: { readonly certificate?: string; readonly conditions?: readonly Condition[] };
}

export const signingRequests = clusterScoped<SigningRequest>('certificates.k8s.io/v1', 'CertificateSigningRequest');

/** To be written to its subresource `approval`. `now`: RFC 3339. */
export function approved(request: SigningRequest, message: string, now: string): SigningRequest {
  const approval = { type: 'Approved', status: 'True', reason: 'Refit', message, lastUpdateTime: now } as const;
  return { ...request, status: { ...request.status, conditions: [approval] } };
}
