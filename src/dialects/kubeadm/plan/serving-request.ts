/**
 * Checks the certificate request of a kubelet. Somebody who stole the credentials of the kubelet can also write the
 * addresses in the status of its Node. So each name in the request must be known from the manifest or from the host
 * itself, and must belong to no other host.
 */
import { BlockList, isIP, isIPv6, SocketAddress } from 'node:net';
import { CertificationRequest, type CertificationRequestInfo } from '@peculiar/asn1-csr';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  Extensions,
  type GeneralName,
  id_ce_subjectAltName,
  SubjectAlternativeName,
} from '@peculiar/asn1-x509';
import type { Node, SigningRequest } from '../../../kube/resources.ts';
import { sameJson } from '../../../util/json.ts';
import type { Manifest, ManifestHost } from './manifest.ts';

export const NODE_USER = 'system:node:';
const GROUP = 'system:nodes';
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
/** Object identifiers of the parts of a subject. */
const ORGANIZATION = '2.5.4.10';
const COMMON_NAME = '2.5.4.3';
const PEM =
  /^\s*-----BEGIN CERTIFICATE REQUEST-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE REQUEST-----\s*$/;

export interface Known extends Pick<Manifest, 'hosts'> {
  readonly host: Pick<ManifestHost, 'name' | 'address'>;
  /** The addresses of the host in the manifest. */
  readonly own: readonly string[];
  readonly nodes: readonly Node[];
  /** The addresses of the host. A script has read them on the host as root. */
  readonly shown: readonly string[];
  /** The addresses of the control plane as a whole, from kubeadm's configuration and the kubeconfig. */
  readonly controlPlane: readonly string[];
  /** The address ranges of Services in CIDR form, separated by commas. */
  readonly services: string;
}

/** Returns what is wrong with the request; undefined if nothing is wrong. */
export function problemOfRequest({ spec }: SigningRequest, known: Known): string | undefined {
  const user = `${NODE_USER}${known.host.name}`;
  if (spec.username !== user) return `it was made by ${spec.username}, not by ${user}`;
  if (!spec.groups?.includes(GROUP)) return `the groups of its creator lack ${GROUP}`;
  const usages = (spec.usages ?? []).toSorted();
  const needed = usages.filter((usage) => usage !== 'key encipherment');
  if (!sameJson(needed, ['digital signature', 'server auth']))
    return `its usages are ${usages.join(', ')}`;
  const [, base64] = PEM.exec(Buffer.from(spec.request, 'base64').toString('latin1')) ?? [];
  if (base64 === undefined) return 'it is not one request in PEM';
  if (known.services === '') return 'ConfigMap kubeadm-config has no serviceSubnet';
  try {
    const der = new Uint8Array(Buffer.from(base64, 'base64')).buffer;
    const { certificationRequestInfo: asked } = strictly(CertificationRequest, der);
    const subject = asked.subject.flatMap((parts) =>
      parts.map(({ type, value }) => `${type}=${value.printableString ?? value.utf8String}`),
    );
    if (!sameJson(subject.toSorted(), [`${ORGANIZATION}=${GROUP}`, `${COMMON_NAME}=${user}`]))
      return `its subject is not CN=${user}, O=${GROUP}`;
    return namesIn(asked).flatMap((name) => problemOfName(name, known) ?? [])[0];
  } catch {
    return 'it is not a PKCS #10 in DER';
  }
}

function problemOfName(
  { dNSName: dns, iPAddress: ip = '' }: Partial<GeneralName>,
  known: Known,
): string | undefined {
  const { host, hosts, own, nodes, shown, services, controlPlane } = known;
  const wanted = dns ?? ip;
  const has = (texts: readonly string[]): boolean =>
    texts.some((text) => canonical(text) === canonical(wanted));
  const holders = nodes.filter(({ status }) =>
    has((status?.addresses ?? []).map(({ address }) => address)),
  );
  const isAddress = isIP(ip) !== 0 && !ip.startsWith('::ffff:');
  if (dns === undefined && !isAddress)
    return 'it asks for something other than DNS names and IP addresses';
  if (!holders.some(({ metadata }) => metadata.name === host.name))
    return `the status of its Node lacks ${wanted}`;
  if (dns !== undefined)
    return [host.name, host.address].includes(dns)
      ? undefined
      : `${dns} is neither the name nor the address of this host in the manifest`;
  if (isOfService(ip, services)) return `${ip} is in the range of Services`;
  const others = hosts.filter(({ name }) => name !== host.name).map(({ address = '' }) => address);
  if (holders.length > 1 || has(others)) return `${ip} is also an address of another host or Node`;
  if (has(own)) return undefined;
  if (has(controlPlane)) return `${ip} is an address of the control plane`;
  return has(shown) ? undefined : `${ip} is not an address of the host`;
}

/** Returns the canonical form of an address. An IPv4 address that is written as IPv6 becomes IPv4. */
function canonical(address: string): string {
  if (!isIPv6(address)) return address;
  return new SocketAddress({ address, family: 'ipv6' }).address.replace(/^::ffff:(?=.*\.)/, '');
}

function isOfService(ip: string, services: string): boolean {
  const list = new BlockList();
  const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv6(address) ? 'ipv6' : 'ipv4');
  for (const [network = '', prefix] of services.split(',').map((range) => range.split('/')))
    list.addSubnet(network, Number(prefix), familyOf(network));
  return list.check(ip, familyOf(ip));
}

/**
 * Returns the SANs of the request. If the request has no SANs, or has any other extension, returns one empty name,
 * which is always refused.
 */
function namesIn({ attributes }: CertificationRequestInfo): readonly Partial<GeneralName>[] {
  const [value, ...others] = attributes.flatMap(({ type, values }) =>
    type === EXTENSION_REQUEST ? values : undefined,
  );
  const [extension, ...more] = value ? strictly(Extensions, value) : [];
  if (extension?.extnID !== id_ce_subjectAltName || others.length + more.length > 0) return [{}];
  const names = strictly(SubjectAlternativeName, extension.extnValue.buffer);
  return names.length === 0 ? [{}] : names;
}

/** Parses DER. Throws if the bytes are not in the only form that DER allows, because the signer might read them differently. */
function strictly<T>(type: new () => T, der: ArrayBuffer): T {
  const value = AsnConvert.parse(der, type);
  if (!Buffer.from(AsnConvert.serialize(value)).equals(new Uint8Array(der)))
    throw new Error('not DER');
  return value;
}
