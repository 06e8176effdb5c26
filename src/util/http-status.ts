/** Returns true if the status of an HTTP answer says that the server did what it was asked. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}
