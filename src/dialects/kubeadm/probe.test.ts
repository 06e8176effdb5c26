/** Owns the table of what a host's lines tell. */
import { expect, test } from 'vitest';
import { parseFacts, tagOf } from './probe.ts';

test.each([
  ['registry.k8s.io/kube-apiserver:v1.36.3', 'v1.36.3'],
  ['registry.local:5000/kube-apiserver:v1.36.3', 'v1.36.3'],
  ['registry.local:5000/kube-apiserver:v1.36.3@sha256:0123', 'v1.36.3'],
  ['registry.local:5000/kube-apiserver', undefined],
  ['registry.k8s.io/kube-apiserver@sha256:0123', undefined],
])('the tag of %s', (image, tag) => {
  expect(tagOf(image)).toBe(tag);
});

test('a control-plane host in the middle of an upgrade', () => {
  const lines = [
    'kubeadm=v1.36.3',
    'kubelet=v1.36.2',
    'image.kube-apiserver=registry.local:5000/kube-apiserver:v1.36.3',
    'image.kube-scheduler=registry.local:5000/kube-scheduler:v1.36.2',
    'missing=kube-controller-manager',
    'journal=uid kubeadm begun',
    '',
  ];
  expect(parseFacts(lines.join('\n'))).toEqual({
    kubeadm: 'v1.36.3',
    kubelet: 'v1.36.2',
    staticPods: { 'kube-apiserver': 'v1.36.3', 'kube-scheduler': 'v1.36.2' },
    missing: ['kube-controller-manager'],
    journal: ['uid kubeadm begun'],
  });
});

test('a host with nothing on it', () => {
  expect(parseFacts('kubeadm=\nkubelet=\n')).toEqual({
    kubeadm: undefined,
    kubelet: undefined,
    staticPods: {},
    missing: [],
    journal: [],
  });
});
