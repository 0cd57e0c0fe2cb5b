create function pg_temp.rwproxy_verify(statement text) returns table (missing boolean, total numeric, line text)
language plpgsql stable security definer
as $$
begin
    return query execute statement;
end
$$
