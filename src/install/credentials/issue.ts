/** Has the cluster sign a client certificate, by a CertificateSigningRequest that this command approves itself. */
import { randomUUID } from 'node:crypto';
import { clusterScoped } from '../../kube/resources.ts';
import { ifFound } from '../../kube/status-error.ts';
import type { Condition, KubeObject } from '../../kube/types.ts';
import { type Clock, rfc3339, sleep } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import type { ObjectsRun } from '../cluster-objects.ts';
import { requestFor } from './certificate-request.ts';

/** Both in PEM. */
export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
}

interface SigningRequest extends KubeObject {
  readonly spec: object;
  readonly status?: { readonly certificate?: string; readonly conditions?: readonly Condition[] };
}

const signingRequests = clusterScoped<SigningRequest>(
  'certificates.k8s.io/v1',
  'CertificateSigningRequest',
  'certificatesigningrequests',
);

/** The controller manager needs a moment; longer, and it does not sign. */
const PATIENCE_MS = 30_000;
const POLL_MS = 200;

export type IssueParts = Pick<ObjectsRun, 'client' | 'abort'> & { readonly clock: Clock };

/** The request is deleted again. The signer may choose a shorter time than `seconds`. */
export async function issueCertificate(
  user: string,
  seconds: number,
  { client, clock, abort }: IssueParts,
): Promise<ClientCertificate> {
  const { key, request } = requestFor(user);
  const name = `refit-${randomUUID()}`;
  const created = await client.create(
    signingRequests,
    {
      metadata: { name },
      spec: {
        request: Buffer.from(request).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client',
        expirationSeconds: seconds,
        usages: ['client auth', 'digital signature'],
      },
    },
    { abort },
  );
  try {
    const now = rfc3339(clock.now());
    const message = `refit credentials made this request for ${user}`;
    const approval = { type: 'Approved', status: 'True', reason: 'Refit', message, lastUpdateTime: now } as const;
    const approved = { ...created, status: { conditions: [approval] } };
    await client.replace(signingRequests, approved, { subresource: 'approval', abort });
    return { key, certificate: await certificateOf(name, { client, clock, abort }) };
  } finally {
    await ifFound(client.delete(signingRequests, name)).catch(() => undefined);
  }
}

async function certificateOf(name: string, { client, clock, abort }: IssueParts): Promise<string> {
  for (const end = clock.monotonic() + PATIENCE_MS; ; await sleep(clock, POLL_MS, abort)) {
    const { status } = await client.get(signingRequests, name, { abort });
    if (status?.certificate) return Buffer.from(status.certificate, 'base64').toString();
    const failed = status?.conditions?.find(({ type }) => type === 'Failed' || type === 'Denied');
    if (failed === undefined && clock.monotonic() < end) continue;
    const why = failed?.message ?? `no certificate after ${PATIENCE_MS / 1000} s`;
    throw new RefitError('REFIT_INSTALL', `the cluster did not sign certificatesigningrequest ${name}: ${why}`);
  }
}
