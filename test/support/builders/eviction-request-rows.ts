/** EvictionRequests that an API server accepts or refuses, with the fields for which it refuses them. */
import { type EvictionRequest, REQUESTER } from '../../../src/drain/eviction-request-objects.ts';

const UID = '0c5dc5a9-8d5e-4b3f-9a5e-1d2c3b4a5f60';

function request(name: string, spec: Partial<EvictionRequest['spec']>): EvictionRequest {
  return {
    apiVersion: 'lifecycle.k8s.io/v1alpha1',
    kind: 'EvictionRequest',
    metadata: { name },
    spec: {
      target: { pod: { name: 'web-0', uid: UID } },
      requester: REQUESTER,
      intent: 'Eviction',
      ...spec,
    },
  };
}

export const REQUEST_ROWS: readonly [
  what: string,
  request: EvictionRequest,
  faults: readonly string[],
][] = [
  ['as a drain makes it', request(`refit-drain-${UID}`, {}), []],
  ['withdrawn', request('withdrawn', { intent: 'Withdrawn' }), []],
  ['with an unknown intent', request('intent', { intent: 'Evict' }), ['spec.intent']],
  [
    'with a requester without a domain',
    request('bare', { requester: 'refit' }),
    ['spec.requester'],
  ],
  [
    'with a requester of Kubernetes',
    request('reserved', { requester: 'a.k8s.io/drain' }),
    ['spec.requester'],
  ],
  [
    'with a uid in upper case',
    request('upper', { target: { pod: { name: 'web-0', uid: UID.toUpperCase() } } }),
    ['spec.target.pod.uid'],
  ],
  [
    'with a uid that is none',
    request('uid', { target: { pod: { name: 'web-0', uid: 'web-0-uid' } } }),
    ['spec.target.pod.uid'],
  ],
  [
    'with a pod name that is none',
    request('pod', { target: { pod: { name: 'Web_0', uid: UID } } }),
    ['spec.target.pod.name'],
  ],
  ['without a target', request('no-target', { target: {} }), ['spec.target']],
  ['with a name that is none', request('Not_A_Name', {}), ['metadata.name']],
];
