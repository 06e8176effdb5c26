/** Shows which requests for a serving certificate are valid, and which faults are found in other requests. */
import { generateKeyPairSync } from 'node:crypto';
import { CertificationRequest, CertificationRequestInfo } from '@peculiar/asn1-csr';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  Attribute,
  AttributeTypeAndValue,
  AttributeValue,
  Extension,
  Extensions,
  GeneralName,
  id_ce_subjectAltName,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
} from '@peculiar/asn1-x509';
import { expect, test } from 'vitest';
import type { Node, SigningRequest } from '../../../kube/resources.ts';
import { parseManifest } from './manifest.ts';
import { type Known, problemOfRequest } from './serving-request.ts';

const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const KEY = AsnConvert.parse(
  publicKey.export({ type: 'spki', format: 'der' }),
  SubjectPublicKeyInfo,
);
const HOSTS = [
  '{name: cp1, role: controlPlane, address: 10.0.0.7}',
  '{name: w1, role: worker, address: 192.0.2.21}',
];
const { hosts } = parseManifest(
  `{version: v1.36.3, hosts: [${HOSTS.join()}], binaries: {kubeadm: {path: /a}, kubelet: {path: /b}}}`,
  'm.yaml',
);
const nodeOf = (name: string, ...addresses: string[]): Node => ({
  metadata: { name },
  status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) },
});
const OWN = [
  'w1',
  'w1.example.com',
  '10.0.0.7',
  '10.0.0.9',
  '10.0.0.21',
  '10.0.0.22',
  '10.96.0.1',
  '192.0.2.21',
  'fd00::21',
  'fd00:0::22',
  'fd00::23',
  '10.0.0.24',
  '10.0.0.100',
];
const KNOWN: Known = {
  hosts,
  host: { name: 'w1', address: '192.0.2.21' },
  own: ['192.0.2.21'],
  nodes: [nodeOf('w1', ...OWN), nodeOf('w2', '10.0.0.22', 'fd00::22', '::ffff:10.0.0.24')],
  controlPlane: ['10.0.0.100', '192.0.2.21', 'fd00:0:0::23'],
  shown: [
    '10.0.0.24',
    '10.0.0.100',
    'fd00::22',
    'fd00::23',
    '10.0.0.7',
    '10.0.0.8',
    '10.0.0.21',
    '10.0.0.22',
    '10.96.0.1',
    'fd00::21',
  ],
  services: '10.96.0.0/12,fd00:96::/108',
};

type Subject = readonly (readonly [string, object])[];

interface Asked {
  readonly subject?: Subject;
  readonly names?: readonly object[];
  readonly extension?: object;
  readonly attribute?: object;
  /** Attributes of the request in addition to the attribute with the names. */
  readonly more?: readonly Attribute[];
  readonly spec?: Partial<SigningRequest['spec']>;
  readonly der?: (bytes: Buffer) => Buffer;
  readonly pem?: (text: string) => string;
}

const O: Subject[number] = ['2.5.4.10', { printableString: 'system:nodes' }];
const CN: Subject[number] = ['2.5.4.3', { utf8String: 'system:node:w1' }];
const GOOD = [{ dNSName: 'w1' }, { iPAddress: '10.0.0.21' }];
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';

function nameOf(subject: Subject): Name {
  return new Name(
    subject.map(([type, value]) => {
      const attribute = new AttributeTypeAndValue({ type, value: new AttributeValue(value) });
      return new RelativeDistinguishedName([attribute]);
    }),
  );
}

function attributeOf({ names = GOOD, extension = {}, attribute = {} }: Asked): Attribute {
  const value = new SubjectAlternativeName(names.map((each) => new GeneralName(each)));
  const extnValue = new OctetString(AsnConvert.serialize(value));
  const extensions = new Extensions([
    new Extension({ extnID: id_ce_subjectAltName, extnValue, ...extension }),
  ]);
  return new Attribute({
    type: EXTENSION_REQUEST,
    values: [AsnConvert.serialize(extensions)],
    ...attribute,
  });
}

function requestOf(asked: Asked): SigningRequest {
  const {
    subject = [O, CN],
    more = [],
    spec = {},
    der = (bytes) => bytes,
    pem = (text) => text,
  } = asked;
  const info = new CertificationRequestInfo({ subject: nameOf(subject), subjectPKInfo: KEY });
  info.attributes.push(attributeOf(asked), ...more);
  const request = new CertificationRequest({
    certificationRequestInfo: info,
    signatureAlgorithm: new AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' }),
    signature: new ArrayBuffer(8),
  });
  const base64 = der(Buffer.from(AsnConvert.serialize(request))).toString('base64');
  const text = `-----BEGIN CERTIFICATE REQUEST-----\n${base64}\n-----END CERTIFICATE REQUEST-----\n`;
  return {
    metadata: { name: 'csr-1' },
    spec: {
      request: Buffer.from(pem(text)).toString('base64'),
      signerName: 'kubernetes.io/kubelet-serving',
      username: 'system:node:w1',
      groups: ['system:nodes', 'system:authenticated'],
      usages: ['digital signature', 'server auth'],
      ...spec,
    },
  };
}

test.each<[string, Asked]>([
  ['its name and an address that it shows', {}],
  [
    'key encipherment, for an RSA key',
    { spec: { usages: ['server auth', 'digital signature', 'key encipherment'] } },
  ],
  [
    'the address in the manifest, which a provider translates',
    { names: [{ iPAddress: '192.0.2.21' }] },
  ],
  ['IPv6', { names: [{ iPAddress: 'fd00::21' }] }],
])('right: %s', (_name, asked) => {
  expect(problemOfRequest(requestOf(asked), KNOWN)).toBeUndefined();
});

test('right: a DNS name that the manifest has as its address', () => {
  const known = { ...KNOWN, host: { name: 'w1', address: 'w1.example.com' } };
  expect(
    problemOfRequest(requestOf({ names: [{ dNSName: 'w1.example.com' }] }), known),
  ).toBeUndefined();
});

const MORE = 'it asks for something other than DNS names and IP addresses';
const NO_DER = 'it is not a PKCS #10 in DER';
const SUBJECT = 'its subject is not CN=system:node:w1, O=system:nodes';
const challenge = new Attribute({
  type: '1.2.840.113549.1.9.7',
  values: [new Uint8Array([0x0c, 1, 65]).buffer],
});
const other = attributeOf({ names: [{ dNSName: 'kubernetes' }] });

test.each<[string, Asked, string]>([
  [
    'another maker',
    { spec: { username: 'system:node:w2' } },
    'it was made by system:node:w2, not by system:node:w1',
  ],
  [
    'no group of nodes',
    { spec: { groups: ['system:authenticated'] } },
    'the groups of its creator lack system:nodes',
  ],
  [
    'another usage',
    { spec: { usages: ['digital signature', 'server auth', 'client auth'] } },
    'its usages are client auth, digital signature, server auth',
  ],
  ['a usage that is missing', { spec: { usages: ['server auth'] } }, 'its usages are server auth'],
  ['another name', { subject: [O, ['2.5.4.3', { utf8String: 'system:node:w2' }]] }, SUBJECT],
  [
    'another organization',
    { subject: [['2.5.4.10', { utf8String: 'system:masters' }], CN] },
    SUBJECT,
  ],
  [
    'two organizations',
    { subject: [O, ['2.5.4.10', { utf8String: 'system:masters' }], CN] },
    SUBJECT,
  ],
  ['no organization', { subject: [CN] }, SUBJECT],
  [
    'both in one',
    { subject: [['2.5.4.3', { utf8String: 'system:node:w1,2.5.4.10=system:nodes' }]] },
    SUBJECT,
  ],
  [
    'text that has two readings',
    { subject: [O, ['2.5.4.3', { teletexString: 'system:node:w1' }]] },
    SUBJECT,
  ],
  [
    'the name of another',
    { names: [{ dNSName: 'kubernetes.default' }] },
    'the status of its Node lacks kubernetes.default',
  ],
  [
    'a name that only its Node reports',
    { names: [{ dNSName: 'w1.example.com' }] },
    'w1.example.com is neither the name nor the address of this host in the manifest',
  ],
  ['a pattern', { names: [{ dNSName: '*' }] }, 'the status of its Node lacks *'],
  [
    'an address that its Node does not report',
    { names: [{ iPAddress: '10.0.0.8' }] },
    'the status of its Node lacks 10.0.0.8',
  ],
  [
    'an address that only its Node reports',
    { names: [...GOOD, { iPAddress: '10.0.0.9' }] },
    '10.0.0.9 is not an address of the host',
  ],
  [
    'an address of another',
    { names: [{ iPAddress: '10.0.0.22' }] },
    '10.0.0.22 is also an address of another host or Node',
  ],
  [
    'an address of another in the manifest',
    { names: [{ iPAddress: '10.0.0.7' }] },
    '10.0.0.7 is also an address of another host or Node',
  ],
  [
    'the API server, as a Service',
    { names: [{ iPAddress: '10.96.0.1' }] },
    '10.96.0.1 is in the range of Services',
  ],
  [
    'the address of another, written in another way',
    { names: [{ iPAddress: 'fd00::22' }] },
    'fd00::22 is also an address of another host or Node',
  ],
  [
    'the address of another, written as IPv6',
    { names: [{ iPAddress: '10.0.0.24' }] },
    '10.0.0.24 is also an address of another host or Node',
  ],
  [
    'the address of the control plane, which the host shows as long as it has it',
    { names: [{ iPAddress: '10.0.0.100' }] },
    '10.0.0.100 is an address of the control plane',
  ],
  [
    'the address of the control plane, written in another way',
    { names: [{ iPAddress: 'fd00::23' }] },
    'fd00::23 is an address of the control plane',
  ],
  ['an e-mail address', { names: [...GOOD, { rfc822Name: 'a@example.com' }] }, MORE],
  ['a URI', { names: [{ uniformResourceIdentifier: 'spiffe://x' }] }, MORE],
  ['an IPv4 address as IPv6', { names: [{ iPAddress: '::ffff:10.0.0.21' }] }, MORE],
  ['no name', { names: [] }, MORE],
  ['another extension', { extension: { extnID: '2.5.29.19' } }, MORE],
  ['another attribute in its place', { attribute: { type: '1.2.840.113549.1.9.7' } }, MORE],
  ['an attribute beside it', { more: [challenge] }, MORE],
  ['names twice', { more: [other] }, MORE],
  [
    'a value beside it',
    { attribute: { values: [...attributeOf({}).values, ...other.values] } },
    MORE,
  ],
  ['more behind it', { der: (bytes) => Buffer.concat([bytes, Buffer.from([5, 0])]) }, NO_DER],
  [
    'a length in another form than DER has',
    { der: (bytes) => Buffer.concat([Buffer.from([0x30, 0x83, 0]), bytes.subarray(2)]) },
    NO_DER,
  ],
  ['what is cut off', { der: (bytes) => bytes.subarray(0, -9) }, NO_DER],
  ['nothing', { der: () => Buffer.alloc(0) }, NO_DER],
  ['two requests', { pem: (text) => `${text}${text}` }, 'it is not one request in PEM'],
  [
    'a certificate',
    { pem: (text) => text.replaceAll(' REQUEST', '') },
    'it is not one request in PEM',
  ],
])('Refit refuses a request for a serving certificate: %s', (_name, asked, problem) => {
  expect(problemOfRequest(requestOf(asked), KNOWN)).toBe(problem);
});

test('refused: its name, where its Node does not report it', () => {
  const problem = problemOfRequest(requestOf({}), { ...KNOWN, nodes: [] });
  expect(problem).toBe('the status of its Node lacks w1');
});

test('refused: any address, where the range of Services is unknown', () => {
  expect(problemOfRequest(requestOf({}), { ...KNOWN, services: '' })).toBe(
    'ConfigMap kubeadm-config has no serviceSubnet',
  );
});
